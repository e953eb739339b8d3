import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { UserFiles } from '../cli/world.ts';
import { Failure } from '../contract/failure.ts';
import { writeWhole } from '../files/whole.ts';

/** The files that a person names on the command line, on disk. */
export const files: UserFiles = {
  async read(path) {
    try {
      if (path !== '-') return readFileSync(path);
      const chunks: Buffer[] = [];
      for await (const chunk of process.stdin) chunks.push(chunk);
      return Buffer.concat(chunks);
    } catch (cause) {
      throw fileFailure('read', path, cause);
    }
  },
  async makeFolder(path) {
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw fileFailure('made', path, cause);
    }
  },
  async remove(path) {
    try {
      rmSync(path, { force: true });
    } catch (cause) {
      throw fileFailure('removed', path, cause);
    }
  },
  async checkAbsent(path) {
    if (existsSync(path))
      throw fileFailure('written', path, new Error('It exists already. Move it away first.'));
  },
  async checkWritable(path) {
    try {
      accessSync(dirname(path), constants.W_OK);
      if (existsSync(path) && !statSync(path).isFile()) throw new Error('It is not a file.');
    } catch (cause) {
      throw fileFailure('written', path, cause);
    }
  },
  writePrivate: async (path, text) => write(path, text, 0o600),
  writePublic: async (path, text) => write(path, text, 0o644),
};

function write(path: string, text: string, mode: number): void {
  try {
    writeWhole(path, text, mode);
  } catch (cause) {
    throw fileFailure('written', path, cause);
  }
}

/** @param done what was tried, such as `read` */
function fileFailure(done: string, path: string, cause: unknown): Failure {
  return new Failure('file_unusable', `The file ${path} can't be ${done}.`, {
    why: cause instanceof Error ? cause.message : String(cause),
    cause,
  });
}
