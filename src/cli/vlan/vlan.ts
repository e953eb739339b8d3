import { join } from 'node:path';
import { type Changes, Failure } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { aboutRemovalOf, type Configuration } from '../../vlan/configuration.ts';
import type { End } from '../../vlan/end.ts';
import { CONFIGURATION_OF, describeEnd } from '../../vlan/formats.ts';
import type { CommandDeclaration } from '../command.ts';
import { retyped } from '../command-line.ts';
import type { Context } from '../context.ts';
import { jsonText } from '../print/output.ts';
import { confirm } from '../questions.ts';
import { applyEnd, summary } from './apply.ts';
import { ADDRESS_OPTION, END_OPTIONS, endArgument } from './end-argument.ts';

/** `slices-conn vlan ID|FILE --site SITE --dev DEV …` (vlan/README.md, "Commands"). */
export const command = {
  about:
    "Prints what a server at one of the reservation's sites needs: a device with the S-tag on the server's network device, and on it one with the C-tag. The reservation is verified before, offline where the service's key set is stored. A saved token is good until its reservation's end: whether it was deleted since, only the service knows, which is asked for a name or an id.\nNothing is changed, except with --apply, which runs the ip commands here, and --out, which writes files.",
  args: { '[id|file]': 'its name or id; the file of its signed token; - for standard input' },
  options: {
    ...END_OPTIONS,
    ...ADDRESS_OPTION,
    format: {
      flags: '--format <format>',
      help: 'for which tool',
      choices: ['iproute2', 'networkd', 'netplan', 'nmcli', 'ifupdown', 'ansible', 'json'],
      default: 'iproute2',
    },
    remove: { flags: '--remove', help: 'print what removes it again; an expired token will do' },
    apply: { flags: '--apply', help: 'run the ip commands here, as root; asks first' },
    out: {
      flags: '--out <dir>',
      help: 'write the files below this folder; / puts them in place',
      conflicts: ['apply', 'remove'],
    },
  },
  examples: [
    'slices-conn show ID --save link.jwt',
    'slices-conn vlan link.jwt --site be-gent1 --dev eth1 --address 10.0.0.1/24 | sudo sh -ex',
    'sudo slices-conn vlan link.jwt --site be-gent1 --dev eth1 --address 10.0.0.1/24 --apply',
    'slices-conn vlan link.jwt --site be-gent1 --dev eth1 --format networkd --out ./files',
    'slices-conn vlan link.jwt --site be-gent1 --dev eth1 --remove | sudo sh -ex',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Prints the configuration of one end of a reservation, writes it, or applies it. */
export async function run(context: Context, [typed]: readonly string[], flags: Flags): Promise<void> {
  const { output } = context;
  const { format = 'iproute2', remove: removing = false, out } = flags;
  checkFlags(context, flags);
  const end = await endArgument(context, typed, flags, removing ? 'remove' : 'configure');
  if (flags.apply) return applyEnd(context, end, removing);
  const configuration = CONFIGURATION_OF[format](end);
  if (out !== undefined) return writeFiles(context, end, configuration, out);
  const described = describeEnd(end, configuration, removing);
  const lines = removing ? configuration.removal : configuration.text;
  output.text(described, format === 'json' ? jsonText(described) : lines.join('\n'));
  // Comments of the text say the same, where the person sees it.
  if (format === 'json' || output.json || output.isSeen) return;
  const { names } = configuration;
  const notices = removing ? aboutRemovalOf(names, end.device) : summary(end, names);
  for (const line of notices) output.notice(line);
}

/** @throws Failure `usage` for a format that can't be applied or has no files, and for --apply without the rights of root */
function checkFlags({ processes, typed }: Context, { format = 'iproute2', apply, out }: Flags): void {
  const fail = (message: string, why: string, fix: string | Changes): never => {
    throw new Failure('usage', message, { why, fix });
  };
  if (apply && format !== 'iproute2') {
    fail('--apply runs the commands of iproute2 only.', `The format is ${format}.`, { format: undefined });
  }
  if (out !== undefined && ['iproute2', 'nmcli', 'ansible', 'json'].includes(format)) {
    const fix = `${retyped(typed, { out: undefined })} > FILE`;
    fail(
      `${format} has no files that have a place of their own.`,
      'Write what is printed where you want it.',
      fix,
    );
  }
  if (apply && !processes.isRoot()) {
    const why = `As root this program has a login and profiles of root's. With yours, let root run what is printed: ${retyped(typed, { apply: undefined })} | sudo sh -ex`;
    fail('Only root may change network devices.', why, `sudo ${retyped(typed, {})}`);
  }
}

/** Writes the files below a folder, and lists them. Asks before it replaces one with another content. */
async function writeFiles(
  context: Context,
  end: End,
  configuration: Configuration,
  folder: string,
): Promise<void> {
  const { files, output } = context;
  const found = await Promise.all(
    configuration.files.map(async (file) => ({
      ...file,
      at: join(folder, file.path),
      before: await files.contentBelow(folder, file.path),
    })),
  );
  const changed = found.filter(({ before, content }) => before !== content);
  const replaced = changed.filter(({ before }) => before !== undefined).map(({ at }) => at);
  if (replaced.length > 0) {
    const named = replaced.join(', ');
    await confirm(context, `Replace ${named}?`, {
      unasked: `Other content is in ${named}, and replacing was not confirmed.`,
      declined: 'Nothing was written.',
    });
  }
  for (const { path, content, isPrivate = false } of changed) {
    await files.writeBelow(folder, path, content, isPrivate);
  }
  const written = found.map(({ at }) => at);
  output.text({ ...describeEnd(end, configuration, false), written }, written.join('\n'));
  if (output.json) return;
  const then = `Then, as root, where the files are in place: ${configuration.commands.join('; ')}`;
  for (const line of [...summary(end, configuration.names), then]) output.notice(line);
}
