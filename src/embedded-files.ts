import { basename } from 'node:path';
import { getAsset, getAssetKeys, getRawAsset } from 'node:sea';
import type * as installed from './installed-files.ts';

/** Reads a file that the build has put into the executable (Node.js, "Single executable applications", Assets). */
export const readInstalled: typeof installed.readInstalled = async (folder, name) => {
  const key = `${folder}/${name}`;
  return getAssetKeys().includes(key) ? new Uint8Array(getAsset(key)) : undefined;
};

/** Reads a file of the program itself, which is in the executable too. @throws Error where there is no such file */
export const readProgram: typeof installed.readProgram = (path) =>
  Buffer.from(getRawAsset(`cli/${basename(path)}`));
