import { aboutEnd, commented, type DeviceNames, type End } from './end.ts';

/** A file that a tool reads. */
export interface ConfigurationFile {
  /** Absolute. */
  readonly path: string;
  /** With a line end at its end. */
  readonly content: string;
  /** As netplan wants it: others can't read the file. Default false. */
  readonly isPrivate?: boolean;
}

/** The text for a tool that configures one end of a reservation, and that removes it again. */
export interface Configuration {
  /** The devices that it makes: of a tool that takes no dots, they are not those of the end. */
  readonly names: DeviceNames;
  /** The printed text: the tool takes it as it is, explanations are comments. Lines without their ends. */
  readonly text: readonly string[];
  /** The printed text that removes the end: a shell script, or a playbook for Ansible. */
  readonly removal: readonly string[];
  /** To be put in place before the commands. Reservations may share one, with the same content. */
  readonly files: readonly ConfigurationFile[];
  /** Lines for a shell of root. */
  readonly commands: readonly string[];
  /**
   * Lines for a shell of root that undo files and commands, and may be run again. The inner device is always
   * deleted; the outer one, and what makes it, goes with the last inner one.
   */
  readonly remove: readonly string[];
}

/** The parts of a {@link Configuration} from which its texts follow. */
export interface Parts extends Pick<Configuration, 'commands' | 'remove'> {
  readonly files?: readonly ConfigurationFile[];
  /** Sentences that a person should know about this text. */
  readonly about: readonly string[];
  /** The same about the removal. */
  readonly aboutRemoval?: readonly string[];
}

/** A configuration that is a shell script. */
export function shellScript(end: End, parts: Parts): Configuration {
  const about = commented([...aboutEnd(end), ...parts.about, 'For a shell of root.']);
  return configuration(end, parts, [...about, ...parts.commands]);
}

/**
 * A configuration that is one file, or several files one after the other, each below its path, as `systemctl
 * cat` shows files. The rest stands in comments, so that the text of one file can be used as it is.
 *
 * @param end that the files are for
 */
export function printedFiles(end: End, parts: Parts): Configuration {
  const { files = [], about, commands } = parts;
  return configuration(end, parts, [
    ...commented([...aboutEnd(end), ...about]),
    ...commented([`Then, as root: ${commands.join('; ')}`]),
    ...files.flatMap((file) => ['', `# ${file.path}`, ...linesOf(file)]),
  ]);
}

function configuration(end: End, parts: Parts, text: readonly string[]): Configuration {
  const { files = [], commands, remove } = parts;
  return { text, removal: removalScript(end, parts), names: end.names, files, commands, remove };
}

/** A file's lines without their ends. */
export function linesOf({ content }: Pick<ConfigurationFile, 'content'>): readonly string[] {
  return content.trimEnd().split('\n');
}

/** A file's content. */
export function contentOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** Sentences that a person should know before an end is removed. */
export function aboutRemovalOf({ outer, inner }: DeviceNames, device: string): readonly string[] {
  return [
    `Removes ${inner}, and ${outer} unless it carries another device. The MTU of ${device} stays as it is.`,
    'A later reservation with the same tags has the same devices: they are removed whoever uses them.',
  ];
}

/** The shell script that removes an end. */
function removalScript(
  end: End,
  { remove, aboutRemoval = [] }: Pick<Parts, 'remove' | 'aboutRemoval'>,
): readonly string[] {
  const { reservation, site, names, device } = end;
  return [
    ...commented([
      `Reservation ${reservation.id}, the end at ${site}`,
      ...aboutRemovalOf(names, device),
      ...aboutRemoval,
      'For a shell of root.',
    ]),
    ...remove,
  ];
}
