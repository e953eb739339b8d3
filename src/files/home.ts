import { homedir } from 'node:os';

/** The home folder of a user who has none: as Debian has it for its services, a folder that does not exist. */
const NONE = '/nonexistent';

/**
 * The user's home folder: `HOME`, else as the system knows the user. A container or a service may run under a number that
 * no user has. Then everything works that is not kept in the home folder.
 */
export function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return NONE;
  }
}
