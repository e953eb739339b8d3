import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { writeArchive } from '../src/build/archives.ts';
import { manualPage } from '../src/build/command-reference.ts';
import { noticesOf, packageFolder } from '../src/build/packages.ts';
import { releaseFaults } from '../src/build/release.ts';
import { SERVER_OPTIONS } from '../src/operate/options.ts';
import { temporaryFolder } from './fixtures/temporary-folder.ts';

/** What runs the server elsewhere: the unit, the container's recipe, and the release. */
const root = new URL('..', import.meta.url).pathname;
const folder = temporaryFolder();

const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const has = (program: string): boolean => spawnSync('which', [program]).status === 0;
const FLAGS = new Set(
  Object.values(SERVER_OPTIONS.serve).map(({ flags }) => /--[a-z-]+/.exec(flags)?.[0] ?? ''),
);

test.skipIf(!has('systemd-analyze'))('the unit for systemd is accepted, and hardened', () => {
  const unit = textOf('src/packaging/systemd/slices-conn.service');
  // The program is not installed on the machine of the test.
  const file = join(folder, 'slices-conn.service');
  writeFileSync(file, unit.replace('/usr/local/bin/slices-conn', '/bin/true'));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
    encoding: 'utf8',
  });
  expect([status, stderr.split('\n').filter((line) => line.includes(file))]).toEqual([0, []]);
  const settings = ['security', '--offline=true', '--threshold=15', file];
  expect(spawnSync('systemd-analyze', settings, { encoding: 'utf8' }).status).toBe(0);
});

/** Debian's packages of the libraries of Node.js; libgcc comes with that of C++. */
const LIBRARIES: readonly [RegExp, string?][] = [
  [/^libatomic\.so/, 'libatomic1'],
  [/^lib(?:stdc\+\+|gcc_s)\.so/, 'libstdc++6'],
  [/^(?:lib(?:c|dl|m|pthread)\.so\.\d|ld-linux-.*)$/],
];

test.skipIf(process.platform !== 'linux' || !has('readelf'))(
  'the container has the libraries of Node.js',
  () => {
    const listed = execFileSync('readelf', ['--dynamic', process.execPath], { encoding: 'utf8' });
    const needed = Array.from(listed.matchAll(/\(NEEDED\).*\[(.*)\]/g), ([, name = '']) => name);
    const packages = needed.flatMap((name) => {
      const known = LIBRARIES.find(([pattern]) => pattern.test(name));
      return known ? (known[1] ?? []) : name;
    });
    expect(packages.length).toBeGreaterThan(1);
    const recipe = textOf('src/packaging/container/Containerfile');
    for (const name of packages) expect(recipe).toContain(` ${name} `);
  },
);

test('unit and containers start serve with flags that it knows', () => {
  const [, unit = ''] =
    /^ExecStart=\S+ (serve .*) \$FLAGS$/m.exec(textOf('src/packaging/systemd/slices-conn.service')) ?? [];
  const [, recipe = '[]'] = /^CMD (\[.*\])$/m.exec(textOf('src/packaging/container/Containerfile')) ?? [];
  const Compose = v.object({
    services: v.record(v.string(), v.object({ command: v.optional(v.array(v.string())) })),
  });
  const compose = v.parse(Compose, parse(textOf('src/packaging/container/compose.yaml'), { merge: true }));
  const composed = Object.values(compose.services).flatMap(({ command }) => (command ? [command] : []));
  expect(composed).toHaveLength(2);
  const commands = [unit.split(' '), v.parse(v.array(v.string()), JSON.parse(recipe)), ...composed];
  for (const [name, ...words] of commands) {
    expect(name).toBe('serve');
    const flags = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '');
    expect(flags.length).toBeGreaterThan(0);
    expect(flags.filter((flag) => !FLAGS.has(flag))).toEqual([]);
  }
});

test.skipIf(!has('caddy'))('the containers have a configuration that Caddy takes', () => {
  const config = join(root, 'src/packaging/container/Caddyfile');
  execFileSync('caddy', ['validate', '--adapter', 'caddyfile', '--config', config], {
    env: { ...process.env, SITE: 'slices.example.org', HOME: folder },
    stdio: 'pipe',
  });
});

describe('the workflows', () => {
  const Steps = v.array(
    v.object({
      uses: v.optional(v.string()),
      run: v.optional(v.string()),
      with: v.optional(v.record(v.string(), v.unknown())),
    }),
  );
  const Workflow = v.object({
    permissions: v.literal('contents: read'),
    jobs: v.record(v.string(), v.object({ steps: Steps, permissions: v.optional(v.unknown()) })),
  });
  const workflows = ['release', 'check'].map((name) => {
    const text = textOf(`.github/workflows/${name}.yml`);
    const read: { permissions: Record<string, string> } = parse(text);
    const [granted] = Object.entries(read.permissions).map((each) => each.join(': '));
    return { text, ...v.parse(Workflow, { ...read, permissions: granted }) };
  });
  const jobs = workflows.flatMap((workflow) => Object.values(workflow.jobs));
  const steps = jobs.flatMap((job) => job.steps);

  test('run scripts that the package has', () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(textOf('package.json'));
    const names = steps.flatMap(({ run = '' }) =>
      Array.from(run.matchAll(/npm run ([a-z]+)/g), ([, name]) => name),
    );
    expect(names).toEqual(['executables', 'archives']);
    expect(names.filter((name = '') => scripts[name] === undefined)).toEqual([]);
  });

  test('name actions by their commit, and keep no token in the checkout', () => {
    for (const { uses, with: given } of steps) {
      if (uses === undefined) continue;
      expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
      if (uses.startsWith('actions/checkout@')) expect(given).toMatchObject({ 'persist-credentials': false });
    }
  });

  test('install packages only where they may read and nothing else', () => {
    const installing = jobs.filter((job) => job.steps.some(({ run = '' }) => /npm ci|\.ci\/run/.test(run)));
    expect(installing).toHaveLength(4);
    expect(installing.filter(({ permissions }) => permissions !== undefined)).toEqual([]);
  });
});

describe('a commit that can be released', () => {
  const url = 'https://github.com/octo/slices-conn';
  const manifest = { version: '1.0.0', repository: { url }, homepage: url, bugs: { url } };
  const changelog = '# Changelog\n\n## [1.0.0] - 2026-12-01\n';
  const fit = { manifest, lock: { version: '1.0.0' }, changelog, changes: '' };
  const { homepage } = JSON.parse(textOf('package.json'));
  const version = '1.0.0-rc.1';
  const early = { version, lock: { version }, changelog: `## [${version}] - 2026-12-01\n` };

  test('has an address, a tag that is its version, words in the changelog, and no changes', () => {
    expect(releaseFaults('v1.0.0', fit)).toEqual([]);
  });

  test.each<[string, string, Partial<typeof fit>, tag?: string]>([
    ['without a repository', 'repository.url', { manifest: { ...manifest, repository: { url: '' } } }],
    ['with the placeholder', 'homepage', { manifest: { ...manifest, homepage } }],
    ['of another version in its lock', 'package-lock.json has version 0.1.0', { lock: { version: '0.1.0' } }],
    ['of which the changelog does not tell', '## [1.0.0] - DATE', { changelog: '## [0.9.0] - 2026-12-01\n' }],
    ['whose day it does not have', '## [1.0.0] - DATE', { changelog: '## [1.0.0] - unreleased\n' }],
    ['with changes', ' M src/main/entry.ts', { changes: ' M src/main/entry.ts\n' }],
    ['before a release', 'pre-release', { ...early, manifest: { ...manifest, version } }, `v${version}`],
    ['of another tag', 'v1.0.1', {}, 'v1.0.1'],
  ])('is not one %s: %s', (_, named, other, tag = 'v1.0.0') => {
    expect(releaseFaults(tag, { ...fit, ...other })).toEqual([expect.stringContaining(named)]);
  });
});

test.each([
  ['/a/node_modules/@hono/node-server/dist/index.mjs', '/a/node_modules/@hono/node-server'],
  [
    'C:\\a\\node_modules\\pg\\node_modules\\pg-types\\index.js',
    'C:\\a\\node_modules\\pg\\node_modules\\pg-types',
  ],
  ['\0/a/node_modules/pg/lib/index.js', '/a/node_modules/pg'],
  ['/a/src/index.ts', undefined],
])('the package of %j is found by its path, as every system writes it', (path, found) => {
  expect(packageFolder(path)).toBe(found);
});

test('the licences have each file that must go along, and the text where a package leaves it out', () => {
  const text = noticesOf(['swagger-ui-dist', 'koa-compose'].map((name) => join(root, 'node_modules', name)));
  const parts = ['Apache License', 'SmartBear', 'react.production.min.js', 'Permission is hereby granted'];
  expect(parts.filter((part) => !text.includes(part))).toEqual([]);
});

test.each([
  ['tar.gz', 'tar', 'tzf'],
  ['zip', 'unzip', '-Z1'],
])(
  'an archive %s has all files below its own folder, and twice the same bytes',
  (extension, program, flag) => {
    const path = join(folder, `slices-conn-1-any.${extension}`);
    const [first, second] = [1, 2].map(() => {
      writeArchive(path, folder, [
        { path: 'bin/slices-conn', content: 'program', runs: true },
        { path: 'LICENSE', content: textOf('LICENSE') },
      ]);
      return readFileSync(path, 'base64');
    });
    expect(first).toBe(second);
    if (!has(program)) return;
    const names = execFileSync(program, [flag, path], { encoding: 'utf8' }).split('\n');
    for (const name of ['bin/slices-conn', 'LICENSE']) expect(names).toContain(`slices-conn-1-any/${name}`);
  },
);

test.skipIf(!has('man')).each(['C', 'C.UTF-8'])(
  'the page of the manual has every command, in %s',
  async (locale) => {
    const file = join(folder, 'slices-conn.1');
    writeFileSync(file, await manualPage('1.0.0'));
    const env = { ...process.env, LC_ALL: locale, MANWIDTH: '100' };
    const { stdout, stderr } = spawnSync('man', ['--warnings', '-l', file], { encoding: 'utf8', env });
    expect(stderr).toBe('');
    for (const part of ['slices-conn reserve', '--bandwidth', 'SLICES_CONN_USER_TOKEN'])
      expect(stdout).toContain(part);
  },
);

test('a build that has nothing to do does nothing, and leaves nothing beside', () => {
  const entry = () => statSync(join(root, 'dist/cli/entry.cjs'));
  const before = entry();
  execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'pipe' });
  expect([entry().ino, entry().mtimeMs]).toEqual([before.ino, before.mtimeMs]);
  expect(readdirSync(join(root, 'dist')).filter((name) => name.startsWith('new-'))).toEqual([]);
});
