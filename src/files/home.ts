import { homedir, userInfo } from 'node:os';
import { isAbsolute } from 'node:path';

/** The home folder of a user who has none: as Debian has it for its services, a folder that does not exist. */
export const NO_HOME = '/nonexistent';

/**
 * The user's home folder: `HOME`, else as the system knows the user. An empty or relative `HOME` does not count: logins would be
 * written below the folder in which a command happens to start. A container or a service may run under a number that
 * no user has. Then everything works that is not kept in the home folder.
 */
export function homeFolder(): string {
  for (const find of [homedir, () => userInfo().homedir]) {
    try {
      const folder = find();
      if (isAbsolute(folder)) return folder;
    } catch {
      // The system does not know this user.
    }
  }
  return NO_HOME;
}
