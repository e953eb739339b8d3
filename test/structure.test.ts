import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseSync } from 'oxc-parser';
import { describe, expect, it } from 'vitest';

/**
 * Which folders, and which files at the top, a folder of src may import from (src/README.md, "The map"). Every folder stands
 * here. The files at the top wire the folders together, and may import all of them.
 */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  words: ['contract'],
  files: ['contract'],
  tokens: ['contract'],
  client: ['contract', 'words', 'tokens'],
  session: ['contract', 'files', 'tokens', 'client'],
  vlan: ['contract'],
  cli: ['contract', 'words', 'tokens', 'client', 'session', 'vlan'],
  allocator: ['contract'],
  store: ['contract', 'files', 'allocator'],
  server: ['contract', 'words', 'tokens', 'allocator'],
  operate: [
    ...['contract', 'files', 'tokens', 'client', 'allocator', 'store', 'server'],
    'src/reference-server.ts',
  ],
  main: [
    ...['contract', 'files', 'tokens', 'client', 'session', 'cli', 'allocator', 'store', 'server', 'operate'],
    ...['src/installed-files.ts', 'src/reference-server.ts'],
  ],
  page: ['contract', 'words', 'vlan'],
  build: ['contract', 'words', 'cli', 'server', 'operate', 'page'],
};

/** Folders of which only types may be imported: the interface that a store implements is declared by its consumer. */
const TYPES_ONLY: Readonly<Record<string, readonly string[]>> = {
  store: ['server', 'tokens'],
  // The flags and results of an operator's commands. Their code is handed over by main.
  'cli/serve': ['operate'],
};

/** Pure folders, and the only packages that they may use. */
const PURE: Readonly<Record<string, readonly string[]>> = {
  contract: ['valibot', '@valibot/to-json-schema'],
  words: [],
  allocator: ['valibot'],
  vlan: [],
};

interface Import {
  from: string;
  to: string;
  typeOnly: boolean;
}

const root = new URL('..', import.meta.url).pathname;
const files = globSync('src/**/*.ts', { cwd: root }).toSorted();
const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));

function parsed(file: string) {
  const result = parseSync(file, sources.get(file) ?? '');
  if (result.errors.length > 0) throw new Error(`${file} does not parse`);
  return result;
}

function importsOf(file: string): Import[] {
  const { module } = parsed(file);
  const fixed = [...module.staticImports, ...module.staticExports].flatMap((statement): Import[] => {
    const request = 'moduleRequest' in statement ? statement.moduleRequest?.value : undefined;
    const requests =
      request !== undefined
        ? [request]
        : statement.entries.flatMap((entry) =>
            'moduleRequest' in entry && entry.moduleRequest ? [entry.moduleRequest.value] : [],
          );
    const typeOnly = statement.entries.length > 0 && statement.entries.every((entry) => entry.isType);
    return [...new Set(requests)].map((to) => ({ from: file, to, typeOnly }));
  });
  const source = sources.get(file) ?? '';
  const dynamic = module.dynamicImports.map(({ moduleRequest }) => ({
    from: file,
    to: source.slice(moduleRequest.start + 1, moduleRequest.end - 1),
    typeOnly: false,
  }));
  return [...fixed, ...dynamic];
}

/** The folder of src that a path lies in; undefined for the files at its top. */
function folderOf(path: string): string | undefined {
  const [, folder, rest] = path.split('/');
  return rest === undefined ? undefined : folder;
}

const imports = files.flatMap(importsOf);

it('row 115: every program that is started for a person has an environment without tokens', () => {
  const starts = files
    .filter((file) => !file.startsWith('src/build/'))
    .flatMap((file) =>
      [...(sources.get(file) ?? '').matchAll(/(?:spawn|execFile)\((.*?)\);/gs)].map(([call]) => call),
    );
  const own = starts.filter((call) => !/childEnvironment|options/.test(call));
  expect(starts.length).toBeGreaterThan(4);
  // The guardian is this program.
  expect(own).toEqual([expect.stringContaining('GUARDIAN')]);
});

describe('imports', () => {
  it('finds them at all', () => {
    expect(imports.length).toBeGreaterThan(200);
    expect(imports.some(({ to }) => to === 'jose')).toBe(true);
  });

  it('follow the arrows of src/README.md', () => {
    const wrong = imports.filter(({ from, to, typeOnly }) => {
      const folder = folderOf(from);
      if (!to.startsWith('.') || folder === undefined) return false;
      const path = normalize(join(dirname(from), to));
      const target = folderOf(path) ?? path;
      if (target === folder || target === 'package.json') return false;
      const types = TYPES_ONLY[folder] ?? TYPES_ONLY[dirname(from).replace('src/', '')];
      if (typeOnly && types?.includes(target)) return false;
      return !ARROWS[folder]?.includes(target);
    });
    expect(wrong).toEqual([]);
  });

  it('keep I/O out of contract, words, allocator and vlan', () => {
    const wrong = imports.filter(({ from, to }) => {
      const allowed = PURE[folderOf(from) ?? ''];
      return allowed !== undefined && !to.startsWith('.') && !allowed.includes(to);
    });
    expect(wrong).toEqual([]);
  });

  it('form no circle, by types neither', () => {
    const targets = new Map(
      files.map((file) => [
        file,
        imports
          .filter(({ from, to }) => from === file && to.startsWith('.'))
          .map(({ to }) => normalize(join(dirname(file), to))),
      ]),
    );
    const done = new Set<string>();
    const walk = (file: string, path: readonly string[]): string[] => {
      if (path.includes(file)) return [[...path, file].join(' → ')];
      if (done.has(file)) return [];
      const found = (targets.get(file) ?? []).flatMap((next) => walk(next, [...path, file]));
      done.add(file);
      return found;
    };
    expect(files.flatMap((file) => walk(file, []))).toEqual([]);
  });
});

describe('every file of src', () => {
  it('documents what it exports', () => {
    const undocumented = files.flatMap((file) => {
      const { program, comments } = parsed(file);
      return program.body.flatMap((node) => {
        if (node.type !== 'ExportNamedDeclaration' || !node.declaration) return [];
        const before = comments.filter(({ end }) => end <= node.start).at(-1);
        const gap = sources.get(file)?.slice(before?.end ?? 0, node.start) ?? '';
        const documented = before?.value.startsWith('*') && gap.trim() === '';
        return documented ? [] : [`${file}: ${sources.get(file)?.slice(node.start, node.start + 60)}`];
      });
    });
    expect(undocumented).toEqual([]);
  });

  it('has at most 500 lines', () => {
    const long = globSync('src/**/*.{ts,css,js}', { cwd: root }).filter(
      (file) => readFileSync(join(root, file), 'utf8').trimEnd().split('\n').length > 500,
    );
    expect(long).toEqual([]);
  });

  it('leaves the clock and randomness to those who call it', () => {
    const calls = files.filter((file) =>
      /Date\.now\(\)|new Date\(\)|Math\.random/.test(sources.get(file) ?? ''),
    );
    expect(calls).toEqual([]);
  });

  it('reads files up to a limit', () => {
    const readers = files.filter(
      (file) =>
        !file.startsWith('src/build/') &&
        imports.some(({ from, to }) => from === file && /^node:fs(?:\/promises)?$/.test(to)) &&
        /\b(?:readFile|readFileSync|createReadStream|openAsBlob|readSync)\b/.test(sources.get(file) ?? ''),
    );
    // The others read what was installed or compiled with the program.
    expect(readers).toEqual(['src/files/bounded.ts', 'src/installed-files.ts', 'src/main/compiled-main.ts']);
    const streams = files.filter((file) => /for await .* of process\.stdin/.test(sources.get(file) ?? ''));
    expect(streams).toEqual([]);
  });

  it('replies in JSON by one function, which escapes what could change a terminal', () => {
    const others = files.filter(
      (file) => file.startsWith('src/server/') && /Response\.json\(/.test(sources.get(file) ?? ''),
    );
    expect(others).toEqual([]);
  });

  it('never leaves the process or prints by itself, outside the entry and the composition root', () => {
    const calls = files.filter((file) => /process\.exit\(|console\./.test(sources.get(file) ?? ''));
    // The last one keeps a library from printing.
    expect(calls).toEqual([
      ...['src/entry.ts', 'src/main/main.ts', 'src/main/terminal.ts'],
      'src/server/identity/load.ts',
    ]);
  });
});

/**
 * npm may run on Node 20, although every script here runs on the checkout's own Node (the package `node`). For each
 * package that wants a newer one, `npm ci` prints five lines. It reads that wish in the lock file, so it is not kept there:
 * after adding such a package, delete its `engines` from package-lock.json. npm leaves it out from then on.
 */
describe('package-lock.json', () => {
  const lock: {
    packages: Record<string, { version?: string; engines?: Record<string, string> | string[] }>;
  } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  /** Whether one of the alternatives of a range begins at Node 20 or before; `^` and plain versions at 20 itself. */
  const allows20 = (range: string): boolean =>
    range.split('||').some((part) => {
      const [, sign = '', major] = /^\s*(>=?|\^|~)?\s*v?(\d+)/.exec(part) ?? [];
      return major === undefined || Number(major) === 20 || (sign.startsWith('>') && Number(major) < 20);
    });

  it('has no package that npm on Node 20 warns about, except this one', () => {
    const warned = Object.entries(lock.packages).flatMap(([path, { engines = {} }]) => {
      const node = Array.isArray(engines) ? undefined : engines['node'];
      return node === undefined || allows20(node) ? [] : [path];
    });
    expect(warned).toEqual(['']);
  });

  it('has the identity provider at one version: its classes are patched', () => {
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(dependencies['oidc-provider']).toBe(lock.packages['node_modules/oidc-provider']?.version);
  });

  it('says nothing about where packages came from', () => {
    expect(JSON.stringify(lock)).not.toContain('"resolved"');
  });
});
