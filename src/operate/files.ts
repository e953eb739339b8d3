import { rmSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';
import { systemReason } from '../contract/foreign-errors.ts';
import { isObject, readJson } from '../contract/json.ts';
import type { Topology } from '../contract/links.ts';
import { readBounded } from '../files/bounded.ts';
import { writeWhole } from '../files/whole.ts';
import type { ReferenceServer } from '../reference-server.ts';
import { CLIENT_ID } from '../server/identity/user-token.ts';
import { checkDirectory, type DirectoryFile } from '../server/portal/directory.ts';
import type { ServeOptions } from './options.ts';

/** The Failure for a file that a flag names and that can't be used. @param what such as `topology` */
export function fileFailure(what: string, path: string, cause: unknown): Failure {
  const why = systemReason(cause);
  return new Failure('file_unusable', `The ${what} ${path} can't be used.`, { why, cause });
}

/** Reads a file that a flag names. @param what see {@link fileFailure} @throws Failure `file_unusable` */
export function readNamedFile(what: string, path: string): Buffer {
  try {
    return readBounded(path);
  } catch (cause) {
    throw fileFailure(what, path, cause);
  }
}

/**
 * Reads a topology file. `createNetwork` checks its content later.
 *
 * @throws Failure `file_unusable`
 */
export function readTopology(path: string): Topology {
  return readObject('topology', path) as Topology;
}

/**
 * Reads a directory file.
 *
 * @throws Failure `file_unusable` naming every violation with its place in the file
 */
export function readDirectory(path: string): DirectoryFile {
  const content = readObject('directory', path);
  try {
    return checkDirectory(content);
  } catch (cause) {
    throw fileFailure('directory', path, cause);
  }
}

function readObject(what: string, path: string): object {
  const text = readNamedFile(what, path).toString();
  const reading = readJson(text);
  if (!reading.ok) {
    const why = reading.fault === 'duplicate' ? 'An object names a member twice.' : faultIn(text);
    throw new Failure('file_unusable', `The ${what} ${path} is not JSON.`, { why });
  }
  if (isObject(reading.value)) return reading.value;
  throw new Failure('file_unusable', `The ${what} ${path} is not a JSON object.`);
}

/** Where a text stops being JSON: the place that the engine names. The engine's message is not shown, since it repeats the text. */
function faultIn(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    const [, line, column] = /line (\d+) column (\d+)/.exec(String(error)) ?? [];
    if (line !== undefined) return `It is wrong from line ${line}, column ${column} on.`;
  }
  return 'It ends too soon, or a value in it is wrong.';
}

/** Removes the ready file when the server stops. @throws Failure `file_unusable` */
export function removeReadyFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (cause) {
    throw fileFailure('ready file', path, cause);
  }
}

/**
 * Writes the addresses of the services to the ready file (cli/README.md, "Commands"), whole or not at all: a script that waits for
 * the file never reads half of it. Everyone may read it, since it holds no secret.
 *
 * @param facts the portal's API groups, host and port of the socket, and the address of the metrics if there are any
 * @throws Failure `file_unusable`
 */
export function writeReadyFile(
  path: string,
  addresses: ReferenceServer['addresses'],
  facts: Pick<ServeOptions, 'projectsApiGroup' | 'experimentsApiGroup'> & {
    listen: string;
    url: string | undefined;
  },
): void {
  const content = {
    base_url: addresses.connectivity,
    portal_url: addresses.portal,
    auth_url: addresses.identity,
    projects_api_group: facts.projectsApiGroup,
    experiments_api_group: facts.experimentsApiGroup,
    client_id: CLIENT_ID,
    listen: facts.listen,
    pid: process.pid,
    metrics_url: facts.url,
  };
  try {
    writeWhole(path, `${JSON.stringify(content)}\n`, 0o644);
  } catch (cause) {
    throw fileFailure('ready file', path, cause);
  }
}
