import { aboutEnd, commented, type DeviceNames, type End } from './end.ts';

/** A file that a tool reads. */
export interface ConfigurationFile {
  /** Absolute. */
  readonly path: string;
  /** With a line end at its end. */
  readonly content: string;
  /** As netplan wants it: others can't read the file. */
  readonly isPrivate: boolean;
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
interface Parts extends Pick<Configuration, 'commands' | 'remove'> {
  readonly files?: readonly ConfigurationFile[];
  /** Sentences that a person should know about this text. */
  readonly about: readonly string[];
  /** The same about the removal. */
  readonly aboutRemoval?: readonly string[];
}

/**
 * A configuration for an end: a shell script, or where there are files, those one after the other, each below its path, as
 * `systemctl cat` shows files. The rest stands in comments, so that the text of one file can be used as it is.
 */
export function configurationOf(
  end: End,
  { files = [], commands, remove, about, aboutRemoval = [] }: Parts,
): Configuration {
  const { reservation, site, names, device } = end;
  const script = 'For a shell of root.';
  const then = files.length === 0 ? script : `Then, as root: ${commands.join('; ')}`;
  const printed = files.flatMap((file) => ['', `# ${file.path}`, ...linesOf(file)]);
  const removal = [
    `Reservation ${reservation.id}, the end at ${site}`,
    ...aboutRemovalOf(names, device),
    ...aboutRemoval,
    script,
  ];
  return {
    ...{ names, files, commands, remove },
    text: [...commented([...aboutEnd(end), ...about, then]), ...(files.length === 0 ? commands : printed)],
    removal: [...commented(removal), ...remove],
  };
}

/** A file. @param isPrivate see {@link ConfigurationFile} */
export function fileOf(path: string, lines: readonly string[], isPrivate = false): ConfigurationFile {
  return { path, content: `${lines.join('\n')}\n`, isPrivate };
}

/** A file's lines without their ends. */
export function linesOf({ content }: ConfigurationFile): readonly string[] {
  return content.trimEnd().split('\n');
}

/** Sentences that a person should know before an end is removed. */
export function aboutRemovalOf({ outer, inner }: DeviceNames, device: string): readonly string[] {
  return [
    `Removes ${inner}, and ${outer} unless it carries another device. The MTU of ${device} stays as it is.`,
    'A later reservation with the same tags has the same devices: they are removed whoever uses them.',
  ];
}
