import manifest from '../../package.json' with { type: 'json' };
import { systemReason } from '../contract/foreign-errors.ts';

/**
 * The program's first step: answers `--version` and `--cli-manifest` without loading anything, and passes everything else
 * to `main.ts`. The official client asks every `slices-*` on the PATH for its version, so that answer must be quick
 * (cli/README.md, "Commands").
 *
 * @param args without the program's own name
 * @param executable a single executable, as it was typed
 * @returns the exit code
 */
export async function enter(args: readonly string[], executable?: string): Promise<number> {
  process.stderr.on('error', () => undefined);
  if (args.length === 1 && args[0] === '--version') return answer(`v${manifest.version}`);
  if (args.length === 1 && args[0] === '--cli-manifest') return answer(JSON.stringify(MANIFEST));
  const { keepCompiled } = await import('./compiled.ts');
  keepCompiled(process.env);
  const { main } = await import('./main.ts');
  return main(args, manifest.version, executable);
}

/** What the official client reads of its sub-commands (cli/README.md, "Commands"). */
const MANIFEST = {
  '@type': 'slices-cli:subcommand-metadata',
  version: '1.0',
  short_help: 'Book network links between research sites',
  tab_completion_supported: true,
  tab_completion_install_option: '--install-completion',
  visible_aliases: [],
  hidden_aliases: [],
};

/** Prints a line; on a full disk it fails as every command does. @returns the exit code */
function answer(line: string): number {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(
      `error: The result can't be written to standard output.\n  why: ${systemReason(error)}\n`,
    );
    process.exit(2);
  });
  process.stdout.write(`${line}\n`);
  return 0;
}

// Nothing else calls it in a single executable. An older Node.js, which may be asked for the version, has no `node:sea`.
if (process.getBuiltinModule?.('node:sea').isSea()) {
  void enter(process.argv.slice(2), process.argv0).then((exitCode) => {
    process.exitCode = exitCode;
  });
}
