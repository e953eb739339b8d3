import { getAsset, getAssetKeys } from 'node:sea';
import type * as installed from './installed-files.ts';

/** Reads a file that the build has put into the executable (Node.js, "Single executable applications", Assets). */
export const readInstalled: typeof installed.readInstalled = async (folder, name) => {
  const key = `${folder}/${name}`;
  return getAssetKeys().includes(key) ? new Uint8Array(getAsset(key)) : undefined;
};
