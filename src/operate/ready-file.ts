import { rmSync } from 'node:fs';
import { writeWhole } from '../files/whole.ts';
import type { ReferenceServer } from '../reference-server.ts';
import { CLIENT_ID } from '../server/identity/user-token.ts';
import { fileFailure } from './file-failure.ts';
import type { ServeOptions } from './options.ts';

/** Removes the file when the server stops. @throws Failure `file_unusable` */
export function removeReadyFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (cause) {
    throw fileFailure('ready file', path, cause);
  }
}

/**
 * Writes where the services are (CLI.md, `serve`), at once, so that a script that waits for it never reads half of it.
 * Everyone may read it: it holds no secret.
 *
 * @param facts the portal's API groups, and where metrics are read, if they are
 * @throws Failure `file_unusable`
 */
export function writeReadyFile(
  path: string,
  addresses: ReferenceServer['addresses'],
  facts: Pick<ServeOptions, 'projectsApiGroup' | 'experimentsApiGroup'> & { url: string | undefined },
): void {
  const content = {
    base_url: addresses.connectivity,
    portal_url: addresses.portal,
    auth_url: addresses.identity,
    projects_api_group: facts.projectsApiGroup,
    experiments_api_group: facts.experimentsApiGroup,
    client_id: CLIENT_ID,
    pid: process.pid,
    ...(facts.url === undefined ? {} : { metrics_url: facts.url }),
  };
  try {
    writeWhole(path, `${JSON.stringify(content)}\n`, 0o644);
  } catch (cause) {
    throw fileFailure('ready file', path, cause);
  }
}
