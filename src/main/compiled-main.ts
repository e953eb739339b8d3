import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { type CompileCache, compileCache } from './compile-cache.ts';
import type { main } from './main.ts';

/** A file of the program that was loaded. */
interface Loaded {
  script: Script;
  /** The size of the compiled code that it began with, in bytes; 0 without any. */
  began: number;
  exports: object;
}

/**
 * The program's files: scripts, each the function of a CommonJS module. Node.js keeps the compiled code of a module as it is when it was loaded, without
 * the functions that are compiled when they are first called, and compiles those at every start: two fifths of a
 * command's time. So the files are loaded here, and kept as they are when the command ends.
 */
export class Program {
  readonly #folder: string;
  readonly #cache: CompileCache | undefined;
  readonly #loaded = new Map<string, Loaded>();
  #packages: NodeJS.Require | undefined;

  /**
   * @param folder of the program's files
   * @param cache where there can be one
   */
  constructor(folder: string, cache: CompileCache | undefined) {
    this.#folder = folder;
    this.#cache = cache;
  }

  /**
   * Loads one of Node's modules, a file of the program (`./NAME`), or a package.
   *
   * @throws Error when there is no such module; whatever its code throws
   */
  readonly require = (id: string): unknown => {
    if (id.startsWith('./')) return this.#file(id.slice(2));
    return process.getBuiltinModule(id) ?? this.#package(id);
  };

  /**
   * Keeps the compiled code of the files that were loaded, if they have not been kept after such a command before.
   *
   * @param purpose what the program was started for
   */
  keep(purpose: string): void {
    const cache = this.#cache;
    if (!cache) return;
    const lesson = `${purpose} ${this.#loaded.size}`;
    const isKnown = cache.knows(lesson);
    if (!isKnown && !cache.learned(lesson)) return;
    for (const [name, { script, began }] of this.#loaded) {
      if (isKnown && began > 0) continue;
      const code = script.createCachedData();
      // Less than there was: V8 has forgotten what was not called for long.
      if (code.length > began) cache.write(name, code);
    }
  }

  #file(name: string): object {
    const known = this.#loaded.get(name);
    if (known) return known.exports;
    const filename = join(this.#folder, name);
    const source = readFileSync(filename, 'latin1');
    const cachedData = this.#cache?.read(name);
    const script = new Script(source, { filename, ...(cachedData ? { cachedData } : {}) });
    const began = script.cachedDataRejected === false ? (cachedData?.length ?? 0) : 0;
    const exports = {};
    this.#loaded.set(name, { script, began, exports });
    script.runInThisContext()(exports, this.require, filename);
    return exports;
  }

  /** A package that is not part of the program's files. */
  #package(name: string): unknown {
    if (!this.#packages) {
      this.#cache?.addPackages();
      this.#packages = createRequire(join(this.#folder, 'main.cjs'));
    }
    return this.#packages(name);
  }
}

/**
 * What takes the place of `main/main.ts` in the program as it is built: the same, from files whose compiled code is kept.
 *
 * @param folder of the program's files
 * @param build a name for what is in them
 */
export function compiledMain(folder: string, build: string): typeof main {
  return async (args, version) => {
    const program = new Program(folder, compileCache(build, process.env));
    const { main } = program.require('./main.cjs') as typeof import('./main.ts');
    const command = args.find((word) => /^\w[\w-]*$/.test(word)) ?? '';
    process.once('exit', (exitCode) => {
      // A person who stops the program is not kept waiting.
      if (exitCode < 128) program.keep(`${command} ${exitCode === 0 ? 'done' : 'failed'}`);
    });
    return main(args, version);
  };
}
