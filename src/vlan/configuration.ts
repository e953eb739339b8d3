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

/** What a tool needs to configure one end of a reservation, and to remove it again. */
export interface Configuration {
  /** The devices that it makes: of a tool that takes no dots, they are not those of the end. */
  readonly names: DeviceNames;
  /** What is printed: the tool takes it as it is, explanations are comments. Lines without their ends. */
  readonly text: readonly string[];
  /** What is printed to remove the end: a shell script, or a playbook for Ansible. */
  readonly removal: readonly string[];
  /** To be put in place before the commands. Other reservations may share one: then its content is the same. */
  readonly files: readonly ConfigurationFile[];
  /** Lines for a shell of root. */
  readonly commands: readonly string[];
  /**
   * Lines for a shell of root that undo files and commands, and may be run again. The inner device is always deleted; the outer
   * one, and what makes it, goes with the last inner one.
   */
  readonly remove: readonly string[];
}

/** The parts of a {@link Configuration} from which its texts follow. */
export interface Parts extends Pick<Configuration, 'commands' | 'remove'> {
  readonly files?: readonly ConfigurationFile[];
  /** What a person should know about this text, as sentences. */
  readonly about: readonly string[];
  /** The same about the removal. */
  readonly aboutRemoval?: readonly string[];
}

/** A configuration that is a shell script. */
export function shellScript(end: End, { about, files = [], ...parts }: Parts): Configuration {
  const { commands, remove } = parts;
  return {
    text: [...commented([...aboutEnd(end), ...about, 'For a shell of root.']), ...commands],
    removal: removalScript(end, parts),
    names: end.names,
    files,
    commands,
    remove,
  };
}

/**
 * A configuration that is one file, or several files one after the other, each below its path, as `systemctl cat` shows
 * files. What else is needed stands in comments, so that the text of one file can be used as it is.
 *
 * @param end that the files are for
 */
export function printedFiles(end: End, { files = [], about, ...parts }: Parts): Configuration {
  const { commands, remove } = parts;
  const [first, ...others] = files;
  const then = commented([`Then, as root: ${commands.join('; ')}`]);
  return {
    text: [
      ...commented([...aboutEnd(end), ...about]),
      ...then,
      ...[first, ...others].flatMap((file) => (file ? ['', `# ${file.path}`, ...linesOf(file)] : [])),
    ],
    removal: removalScript(end, parts),
    names: end.names,
    files,
    commands,
    remove,
  };
}

/** A file's lines without their ends. */
export function linesOf({ content }: Pick<ConfigurationFile, 'content'>): readonly string[] {
  return content.trimEnd().split('\n');
}

/** A file's content. */
export function contentOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** What a person should know before an end is removed, as sentences. */
export function aboutRemovalOf({ outer, inner }: DeviceNames, device: string): readonly string[] {
  return [
    `Removes ${inner}, and ${outer} unless it carries another device. The MTU of ${device} stays as it is.`,
    'A later reservation with the same tags has the same devices: they are removed whoever uses them.',
  ];
}

/** The shell script that removes an end. */
export function removalScript(
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
