/** What an executable for Windows says of itself. */
export interface WindowsName {
  version: string;
  description: string;
}

/**
 * A Node.js for Windows without its signature, which does not fit once a program is inside, and with this program's name and
 * version.
 *
 * @throws Error where it has no version of its own
 */
export function withOwnName(node: Uint8Array, name: WindowsName): Uint8Array;
