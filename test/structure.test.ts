import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import type { Declaration, Node } from 'oxc-parser';
import { describe, expect, it } from 'vitest';
import { folderOf, importsOf, parsed, SOURCES, structurePicture, targetOf } from '../src/build/structure.ts';

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
    'src/reference-server.ts',
  ],
  page: ['contract', 'words', 'vlan', 'client'],
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

const root = new URL('..', import.meta.url).pathname;
const files = [...SOURCES.keys()];

const imports = files.flatMap(importsOf);

/** What a file exports, with the file that declares it. */
function exportsOf(file: string): { file: string; name: string }[] {
  return parsed(file).program.body.flatMap((node) => {
    if (node.type === 'ExportAllDeclaration') {
      return exportsOf(targetOf({ from: file, to: node.source.value, typeOnly: false }) ?? '');
    }
    if (node.type !== 'ExportNamedDeclaration') return [];
    const { source, declaration } = node;
    if (declaration && 'id' in declaration && declaration.id && 'name' in declaration.id) {
      return [{ file, name: declaration.id.name }];
    }
    const from = source ? targetOf({ from: file, to: source.value, typeOnly: false }) : undefined;
    return node.specifiers.flatMap(({ local }) =>
      from !== undefined && local.type === 'Identifier' ? [{ file: from, name: local.name }] : [],
    );
  });
}

/** The members of an interface, of a type that lists them, or of a class as others see it. */
function membersOf(declared: Declaration): readonly Node[] {
  if (declared.type === 'TSInterfaceDeclaration') return declared.body.body;
  if (declared.type === 'TSTypeAliasDeclaration') {
    return declared.typeAnnotation.type === 'TSTypeLiteral' ? declared.typeAnnotation.members : [];
  }
  if (declared.type !== 'ClassDeclaration') return [];
  return declared.body.body.filter((member) => {
    const isOwn = 'key' in member && member.key.type === 'PrivateIdentifier';
    return !isOwn && !(member.type === 'MethodDefinition' && member.kind === 'constructor');
  });
}

it('row 115: every program that is started for a person has an environment without tokens', () => {
  const starts = files
    .filter((file) => !file.startsWith('src/build/'))
    .flatMap((file) =>
      [...(SOURCES.get(file) ?? '').matchAll(/(?:spawn|execFile)\((.*?)\);/gs)].map(([call]) => call),
    );
  const own = starts.filter((call) => !/childEnvironment|options/.test(call));
  expect(starts.length).toBeGreaterThan(4);
  // The guardian is this program.
  expect(own).toEqual([expect.stringContaining('GUARDIAN')]);
});

it('no file has the marks of a merge that was left open', () => {
  const kept = globSync(['*', '{bin,src,test}/**/*', '.{ci,github}/**/*'], {
    cwd: root,
    withFileTypes: true,
  });
  const texts = kept.filter((each) => each.isFile() && !/\.(?:gz|png|woff2)$/.test(each.name));
  const open = texts
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => /^(?:<{7}|>{7}) /m.test(readFileSync(path, 'utf8')));
  expect(texts.length).toBeGreaterThan(800);
  expect(open).toEqual([]);
});

it('Node.js runs every file as it stands: proofs and benchmarks are not bundled', () => {
  const refused = globSync('{src,test}/**/*.ts', { cwd: root }).filter((path) => {
    try {
      return stripTypeScriptTypes(readFileSync(join(root, path), 'utf8')) === '';
    } catch {
      return true;
    }
  });
  expect(refused).toEqual([]);
});

/** Lines of code that there may be. These numbers only fall: a commit that raises one says why in its message. */
const BUDGET = { src: 44_479, test: 56_751 };

/** The lines of a text that are neither blank nor part of a comment that has lines of its own. */
function linesOfCode(text: string): number {
  let isComment = false;
  return text.split('\n').filter((typed) => {
    const line = typed.trim();
    const wasComment = isComment;
    if (wasComment || line.startsWith('/*')) isComment = !line.includes('*/');
    return line !== '' && !wasComment && !line.startsWith('/*') && !line.startsWith('//');
  }).length;
}

it.each(Object.entries(BUDGET))('%s has at most %i lines of code', (folder, most) => {
  const texts = globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root }).map((path) =>
    readFileSync(join(root, path), 'utf8'),
  );
  expect(texts.reduce((sum, text) => sum + linesOfCode(text), 0)).toBeLessThanOrEqual(most);
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
      const path = targetOf({ from, to, typeOnly }) ?? '';
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
        imports.filter(({ from }) => from === file).flatMap((each) => targetOf(each) ?? []),
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

it('src/README.md has the picture of it', () => {
  expect(readFileSync(join(root, 'src/README.md'), 'utf8')).toContain(structurePicture());
});

describe('every file of src', () => {
  it('documents what it exports', () => {
    const undocumented = files.flatMap((file) => {
      const { program, comments } = parsed(file);
      return program.body.flatMap((node) => {
        if (node.type !== 'ExportNamedDeclaration' || !node.declaration) return [];
        const before = comments.filter(({ end }) => end <= node.start).at(-1);
        const gap = SOURCES.get(file)?.slice(before?.end ?? 0, node.start) ?? '';
        const documented = before?.value.startsWith('*') && gap.trim() === '';
        return documented ? [] : [`${file}: ${SOURCES.get(file)?.slice(node.start, node.start + 60)}`];
      });
    });
    expect(undocumented).toEqual([]);
  });

  it('documents each member of what the package exports, and exports each error that its words name', () => {
    const exported = exportsOf('src/index.ts');
    const undocumented: string[] = [];
    const named = new Set<string>();
    for (const { file, name } of exported) {
      const { program, comments } = parsed(file);
      const source = SOURCES.get(file) ?? '';
      const docOf = (start: number): string | undefined => {
        const before = comments.filter(({ end }) => end <= start).at(-1);
        const isBeside = before && source.slice(before.end, start).trim() === '';
        return isBeside && before.value.startsWith('*') ? before.value : undefined;
      };
      for (const node of program.body) {
        const declared = node.type === 'ExportNamedDeclaration' ? node.declaration : null;
        if (!declared || !('id' in declared) || !declared.id || !('name' in declared.id)) continue;
        if (declared.id.name !== name) continue;
        const members = membersOf(declared);
        for (const member of members) {
          if (docOf(member.start) === undefined)
            undocumented.push(`${file}: ${name}: ${source.slice(member.start, member.end)}`);
        }
        for (const start of [node.start, ...members.map((member) => member.start)]) {
          const thrown = docOf(start)?.matchAll(/@throws ((?:[A-Z]\w+(?:, | or )?)+)/g) ?? [];
          for (const [, names = ''] of thrown)
            for (const each of names.split(/, | or /)) named.add(each.trim());
        }
      }
    }
    expect(undocumented).toEqual([]);
    const known = new Set([...exported.map(({ name }) => name), 'Error', 'RangeError', 'TypeError']);
    expect(named.size).toBeGreaterThan(3);
    expect([...named].filter((name) => !known.has(name))).toEqual([]);
  });

  it('has at most 500 lines', () => {
    const long = globSync('src/**/*.{ts,css,js}', { cwd: root }).filter(
      (file) => readFileSync(join(root, file), 'utf8').trimEnd().split('\n').length > 500,
    );
    expect(long).toEqual([]);
  });

  it('leaves the clock and randomness to those who call it', () => {
    const calls = files.filter((file) =>
      /Date\.now\(\)|new Date\(\)|Math\.random/.test(SOURCES.get(file) ?? ''),
    );
    expect(calls).toEqual([]);
  });

  it('reads files up to a limit', () => {
    const readers = files.filter(
      (file) =>
        !file.startsWith('src/build/') &&
        imports.some(({ from, to }) => from === file && /^node:fs(?:\/promises)?$/.test(to)) &&
        /\b(?:readFile|readFileSync|createReadStream|openAsBlob|readSync)\b/.test(SOURCES.get(file) ?? ''),
    );
    // The others read what was installed or compiled with the program.
    expect(readers).toEqual(['src/files/bounded.ts', 'src/files/installed.ts']);
    const streams = files.filter((file) => /for await .* of process\.stdin/.test(SOURCES.get(file) ?? ''));
    expect(streams).toEqual([]);
  });

  it('replies in JSON by one function, which escapes what could change a terminal', () => {
    const others = files.filter(
      (file) => file.startsWith('src/server/') && /Response\.json\(/.test(SOURCES.get(file) ?? ''),
    );
    expect(others).toEqual([]);
  });

  it('never leaves the process or prints by itself, outside the entry and the composition root', () => {
    const calls = files.filter((file) => /process\.exit\(|console\./.test(SOURCES.get(file) ?? ''));
    // The last one keeps a library from printing.
    expect(calls).toEqual([
      ...['src/main/entry.ts', 'src/main/main.ts', 'src/main/terminal.ts'],
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
