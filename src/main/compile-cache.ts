import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { homeFolder } from '../files/home.ts';
import { cacheFolder, privateFolder } from '../files/private.ts';
import { writeWhole } from '../files/whole.ts';
import { type Environment, foldersFor } from '../session/profiles/folders.ts';

/** Builds of this program whose compiled code is kept: a few, for who has several of them or several releases of Node.js. */
const MAX_BUILDS = 4;

/** How many lessons are written down: more than there are commands and ways in which they end. */
const MAX_LESSONS = 200;

/** The file with the lessons. No file of the program has this name. */
const LESSONS = 'learned.json';

/**
 * Compiled code of a build of this program, in a private folder: V8 runs whatever it finds there (HOSTILE.md 51). It is
 * written whole or not at all, and V8 refuses what another release of it, other flags or another length of the source
 * made. Whatever can't be read or written is passed over: without it everything works, only slower.
 */
export class CompileCache {
  /** The folder of the build. */
  readonly folder: string;

  /**
   * @param folder for every build's code; it is made where it is missing
   * @param build tells builds of the program and releases of Node.js apart; a file's own name
   * @throws Failure as `privateFolder`; Error of the file system
   */
  constructor(folder: string, build: string) {
    this.folder = join(folder, build);
    cacheFolder(folder, 'entries');
    if (!existsSync(this.folder)) dropOldest(folder);
    cacheFolder(this.folder, 'entries');
  }

  /** What is kept of a file; undefined where there is nothing. */
  read(name: string): Uint8Array | undefined {
    try {
      return readFileSync(join(this.folder, name));
    } catch {
      return undefined;
    }
  }

  /**
   * Keeps the compiled code of a file.
   *
   * @returns whether it could be written: not on a full disk, for one
   */
  write(name: string, code: Uint8Array): boolean {
    try {
      writeWhole(join(this.folder, name), code, 0o600);
      return true;
    } catch {
      return false;
    }
  }

  /** Lets Node.js keep the compiled code of packages here too, as it is when they were loaded. */
  addPackages(): void {
    const umask = process.umask(0o077);
    try {
      enableCompileCache(cacheFolder(join(this.folder, 'packages')));
    } catch {
      // They are compiled at every start.
    } finally {
      process.umask(umask);
    }
  }

  /** Whether a lesson was learned: what the program compiles for one purpose is among what is kept. */
  knows(lesson: string): boolean {
    return this.#lessons().includes(lesson);
  }

  /**
   * Writes a lesson down. Of two processes that do so at the same time, one may learn it again.
   *
   * @returns whether it could be written
   */
  learned(lesson: string): boolean {
    const lessons = [...this.#lessons(), lesson].slice(-MAX_LESSONS);
    return this.write(LESSONS, Buffer.from(JSON.stringify(lessons)));
  }

  #lessons(): unknown[] {
    try {
      const lessons: unknown = JSON.parse(readFileSync(join(this.folder, LESSONS), 'utf8'));
      return Array.isArray(lessons) ? lessons : [];
    } catch {
      return [];
    }
  }
}

/** Makes room for one build more. */
function dropOldest(folder: string): void {
  const found = readdirSync(folder).map((name) => join(folder, name));
  const newestFirst = found.toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const path of newestFirst.slice(MAX_BUILDS - 1)) rmSync(path, { recursive: true, force: true });
}

/**
 * The cache of this user and this environment, where there can be one. As for every program that Node.js runs,
 * `NODE_COMPILE_CACHE` names another folder for it, and `NODE_DISABLE_COMPILE_CACHE=1` is for none.
 *
 * @param build of the program
 */
export function compileCache(build: string, env: Environment): CompileCache | undefined {
  if (env['NODE_DISABLE_COMPILE_CACHE'] === '1') return undefined;
  try {
    const given = env['NODE_COMPILE_CACHE'];
    const folder = given
      ? join(given, 'slices-conn')
      : join(privateFolder(foldersFor(env, homeFolder()).cache), 'compiled');
    return new CompileCache(folder, `${build}-node-${process.versions.node}-${process.arch}`);
  } catch {
    return undefined;
  }
}
