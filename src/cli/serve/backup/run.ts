import type { Invocation } from '../../invocation.ts';
import { escapeText } from '../../print/terminal-text.ts';

/** The flags of the command, as typed. */
export interface BackupFlags {
  data?: string;
}

/** Copies a server's database while it runs. */
export async function serveBackup(
  invocation: Invocation,
  [file = '']: readonly string[],
  { data }: BackupFlags,
): Promise<void> {
  const { bytes, reservations } = await invocation.backUp(data, file);
  await invocation.output.result({ file, bytes, reservations }, (print) =>
    print.card(`Backed up to ${print.paint.bold(escapeText(file))}`, [
      ['holds', `${reservations} reservation${reservations === 1 ? '' : 's'}, ${bytes} bytes`],
      ['secret', 'the signing keys are in it'],
    ]),
  );
}
