import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { homeFolder } from '../files/home.ts';
import { cacheFolder, privateFolder } from '../files/private.ts';
import { writeWhole } from '../files/whole.ts';
import { readProgram } from '../installed-files.ts';
import { foldersFor, type Variables } from '../session/profiles/folders.ts';
import type { main } from './main.ts';

/** Builds whose compiled code is kept, for people who have several of them or several releases of Node.js. */
const MAX_BUILDS = 4;

/** Folders of a build's code: commands call different functions. A command that shares a folder with another is only slower. */
const MAX_COMMANDS = 32;

/** The length of what is before the code in its file, in bytes: the checksums of its source and of itself. */
const CHECKSUMS = 8;

/** A program whose files are loaded with the compiled code that an earlier command kept. */
export interface Program {
  /** Loads one of Node's modules, a file of the program (`./NAME`), or a package. @throws whatever its code throws */
  require(id: string): unknown;
  /** Keeps the compiled code of all files that were loaded, unless all of them were loaded with it. */
  keep(): void;
}

/**
 * Makes a program of scripts, each the function of a CommonJS module. Node.js keeps the compiled code of a module without
 * the functions that are called later, and compiles those at every start (the cost: test/bench/README.md). So files
 * are loaded here, and kept as they are when the command ends.
 *
 * V8 compares the length of the source only, and damaged code crashes it. So code is used only where the checksums of
 * source and code are right. Code that can't be read or written is passed over: the program is slower then.
 *
 * @param folder of the files
 * @param kept the private folder of this build's compiled code, if any
 */
export function createProgram(folder: string, kept: string | undefined): Program {
  const loaded = new Map<string, { script: Script; source: Buffer; exports: object }>();
  const fromPackage = createRequire(join(folder, 'main.cjs'));

  const load = (name: string): object => {
    const known = loaded.get(name);
    if (known) return known.exports;
    const filename = join(folder, name);
    const source = readProgram(filename);
    const cachedData = kept === undefined ? undefined : codeIn(join(kept, name), source);
    const script = new Script(source.toString('latin1'), { filename, ...(cachedData && { cachedData }) });
    const exports = {};
    loaded.set(name, { script, source, exports });
    script.runInThisContext()(exports, require, filename);
    return exports;
  };
  const require = (id: string): unknown =>
    id.startsWith('./') ? load(id.slice(2)) : (process.getBuiltinModule(id) ?? fromPackage(id));

  const keep = (): void => {
    const all = [...loaded];
    if (kept === undefined || all.every(([, { script }]) => script.cachedDataRejected === false)) return;
    try {
      for (const [name, { script, source }] of all) {
        const code = script.createCachedData();
        writeWhole(join(kept, name), Buffer.concat([checksumsOf(source, code), code]), 0o600);
      }
    } catch {
      // On a full disk, for one.
    }
  };
  return { require, keep };
}

function codeIn(path: string, source: Uint8Array): Uint8Array | undefined {
  try {
    const file = readFileSync(path);
    const code = file.subarray(CHECKSUMS);
    return checksumsOf(source, code).equals(file.subarray(0, CHECKSUMS)) ? code : undefined;
  } catch {
    return undefined;
  }
}

function checksumsOf(source: Uint8Array, code: Uint8Array): Buffer {
  return Buffer.from(Uint32Array.of(crc32(source), crc32(code)).buffer);
}

/**
 * The folder for the code of a build and a command, which only this user can change; undefined where it can't be made. As
 * for every program of Node.js, `NODE_COMPILE_CACHE` names another place, and `NODE_DISABLE_COMPILE_CACHE=1` is for none.
 */
export function compiledFolder(build: string, command: string, env: Variables): string | undefined {
  const { NODE_COMPILE_CACHE: given, NODE_DISABLE_COMPILE_CACHE: isOff } = env;
  if (isOff === '1') return undefined;
  try {
    const parent = given || privateFolder(foldersFor(env, homeFolder()).cache);
    const builds = cacheFolder(join(parent, given ? 'slices-conn' : 'compiled'));
    const own = join(builds, `${build}-node-${process.versions.node}-${process.arch}`);
    if (!existsSync(own) && readdirSync(builds).length >= MAX_BUILDS) rmSync(builds, { recursive: true });
    return cacheFolder(join(cacheFolder(own), `${crc32(command) % MAX_COMMANDS}`));
  } catch {
    return undefined;
  }
}

/** Takes the place of `main/main.ts` in the program as it is built. @param folder of its files @param build names their content */
export function compiledMain(folder: string, build: string): typeof main {
  return async (args, version, executable) => {
    const command = args.find((word) => /^\w[\w-]*$/.test(word)) ?? '';
    const program = createProgram(folder, compiledFolder(build, command, process.env));
    const { main } = program.require('./main.cjs') as typeof import('./main.ts');
    // A person who stops the program is not kept waiting.
    process.once('exit', (exitCode) => exitCode < 128 && program.keep());
    return main(args, version, executable);
  };
}
