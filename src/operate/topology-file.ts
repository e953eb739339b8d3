import { readFileSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';
import { isObject, readJson } from '../contract/json.ts';
import type { Topology } from '../contract/links.ts';
import { fileFailure } from './file-failure.ts';

/**
 * Reads a topology file. What it holds is checked where it is used, which names every violation.
 *
 * @throws Failure `file_unusable`
 */
export function readTopology(path: string): Topology {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw fileFailure('topology', path, cause);
  }
  const reading = readJson(text);
  if (!reading.ok) throw new Failure('file_unusable', `The topology ${path} is not JSON.`);
  if (!isObject(reading.value)) throw new Failure('file_unusable', `The topology ${path} is no object.`);
  return reading.value as Topology;
}
