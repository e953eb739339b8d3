import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** The single executable for this machine, where no Node.js is on the PATH. */
const root = new URL('../..', import.meta.url).pathname;
const made = join(root, 'dist/packages/executables');
const home = temporaryFolder();
const { version }: { version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const program = join(made, `${process.platform}-${process.arch}`, 'slices-conn');
const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

beforeAll(() => {
  const script = join(root, 'src/build/package.ts');
  execFileSync(process.execPath, [script, 'executables'], { cwd: root, stdio: 'pipe' });
});

function run(...args: string[]) {
  const env = { HOME: home, PATH: '/usr/bin:/bin', TZ: 'UTC', NODE_OPTIONS: '--no-such-option' };
  const { status, stdout, stderr, signal } = spawnSync(program, args, { env, encoding: 'utf8', cwd: home });
  return { status: status ?? signal, stdout, stderr };
}

test('it prints the licence of each part that is in it', () => {
  const printed = run('help', 'licences').stdout;
  const titles = printed.split(/^-{78}$/m).map((part) => part.trim().split('\n')[0] ?? '');
  expect(new Set(titles).size).toBe(titles.length);
  for (const part of ['jose', 'oidc-provider', 'undici', 'swagger-ui-dist']) {
    expect(titles.filter((title) => title.startsWith(`${part} `))).toHaveLength(1);
  }
  expect(titles).toContain('Node.js');
  expect(printed).toContain('Copyright Node.js contributors');
});

test('nothing in it names the folder in which it was made', () => {
  expect(readFileSync(program).includes(root)).toBe(false);
});

test('where its file has another name, advice is typed with that', () => {
  const renamed = join(home, 'links');
  symlinkSync(program, renamed);
  const { stderr } = spawnSync(renamed, ['reserve'], { env: { HOME: home }, encoding: 'utf8' });
  expect(stderr).toContain(`try: ${renamed} reserve --help\n`);
});

test('it books offline, whatever other programs of Node.js are told', () => {
  expect(run('--version')).toEqual({ status: 0, stdout: `v${version}\n`, stderr: '' });
  const booked = run('--offline', 'reserve', ...LINK, '--start-now', '--for', '2h');
  expect(booked).toMatchObject({ status: 0, stderr: '' });
  expect(booked.stdout).toContain('verified: signed by http://offline.localhost');
});

test.skipIf(process.getuid?.() !== 0)(
  'it runs under a number that no user has, without a home folder',
  () => {
    // A folder and a copy that this user can reach, wherever the checkout is.
    const folder = mkdtempSync('/tmp/slices-conn-nobody-');
    try {
      const copy = join(folder, 'slices-conn');
      copyFileSync(program, copy);
      chmodSync(copy, 0o755);
      chownSync(folder, 54_321, 54_321);
      const env = Object.fromEntries(
        ['STATE', 'CACHE', 'CONFIG'].map((kind) => [`SLICES_CONN_${kind}_DIR`, join(folder, kind)]),
      );
      const args = ['--offline', 'reserve', ...LINK, '--start-now', '--for', '2h'];
      const as = { uid: 54_321, gid: 54_321, cwd: folder, encoding: 'utf8' } as const;
      expect(spawnSync(copy, args, { ...as, env })).toMatchObject({ status: 0, stderr: '' });
      const homeless = spawnSync(copy, args, { ...as, env: {} });
      expect(homeless.stderr).toContain('/nonexistent');
      expect(homeless.status).toBe(2);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test('it serves, logs in, books over HTTP, and its guardian deletes after a kill', async () => {
  const ready = join(home, 'ready.json');
  const flags = ['--memory', '--port', '0', '--auto-approve', 'lead', '--ready-file', ready];
  const quiet = { env: { HOME: home, PATH: '' }, cwd: home, stdio: 'ignore' } as const;
  const server = spawn(program, ['serve', ...flags], quiet);
  try {
    const read = (): Readonly<Record<string, string>> => JSON.parse(readFileSync(ready, 'utf8'));
    const told = await vi.waitFor(read, { timeout: PATIENCE, interval: 50 });
    const { base_url: base = '', portal_url: portal, auth_url: auth } = told;
    for (const path of ['/api-docs/swagger-ui.css', '/ui/page.js']) {
      expect((await fetch(base + path)).status).toBe(200);
    }
    run('profile', 'set', 'here', `baseUrl=${base}`, `portalUrl=${portal}`, `authUrl=${auth}`);
    expect(run('profile', 'use', 'here').status).toBe(0);
    expect(run('login', '--no-browser')).toMatchObject({ status: 0 });
    expect(run('reserve', ...LINK, '--start-now', '--for', '2h')).toMatchObject({ status: 0, stderr: '' });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
    const killed = run('run', ...LINK, '--for', '1h', '--', '/bin/sh', '-c', 'kill -9 ${PPID}');
    expect(killed.status).toBe('SIGKILL');
    const states = () => {
      const { items }: { items: { state: string }[] } = JSON.parse(run('list', '--all', '--json').stdout);
      return items.map(({ state }) => state).toSorted();
    };
    const waiting = { timeout: PATIENCE, interval: 200 };
    await vi.waitFor(() => expect(states()).toEqual(['active', 'deleted']), waiting);
  } finally {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    expect(await ended).toBe(0);
  }
});
