import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
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

describe('the unit for systemd', () => {
  const unit = textOf('src/packaging/systemd/slices-conn.service');

  test.skipIf(!has('systemd-analyze'))('is accepted, and hardened', () => {
    // The program is not installed on the machine of the test.
    const file = join(folder, 'slices-conn.service');
    writeFileSync(file, unit.replace('/usr/local/bin/slices-conn', '/bin/true'));
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    expect([verified.status, verified.stderr.split('\n').filter((line) => line.includes(file))]).toEqual([
      0,
      [],
    ]);
    const settings = ['security', '--offline=true', '--threshold=15', file];
    expect(spawnSync('systemd-analyze', settings, { encoding: 'utf8' }).status).toBe(0);
  });

  test('has flags that serve knows', () => {
    const [, line = ''] = /^ExecStart=\S+ serve (.*) \$FLAGS$/m.exec(unit) ?? [];
    const given = line.match(/--[a-z-]+/g) ?? [];
    expect(given.length).toBeGreaterThan(0);
    expect(given.filter((flag) => !FLAGS.has(flag))).toEqual([]);
  });
});

describe('the containers', () => {
  const Compose = v.object({
    services: v.record(v.string(), v.object({ command: v.optional(v.array(v.string())) })),
  });

  test('have flags that serve knows', () => {
    const file: unknown = parse(textOf('src/packaging/container/compose.yaml'), { merge: true });
    const commands = Object.values(v.parse(Compose, file).services).flatMap(({ command }) =>
      command ? [command] : [],
    );
    expect(commands).toHaveLength(2);
    const [, recipe = '[]'] = /^CMD (\[.*\])$/m.exec(textOf('src/packaging/container/Containerfile')) ?? [];
    for (const [name, ...flags] of [...commands, v.parse(v.array(v.string()), JSON.parse(recipe))]) {
      expect(name).toBe('serve');
      const names = flags.filter((flag) => flag.startsWith('--')).map((flag) => flag.split('=')[0] ?? '');
      expect(names.filter((flag) => !FLAGS.has(flag))).toEqual([]);
    }
  });

  test.skipIf(!has('caddy'))('have a configuration that Caddy takes', () => {
    const config = join(root, 'src/packaging/container/Caddyfile');
    execFileSync('caddy', ['validate', '--adapter', 'caddyfile', '--config', config], {
      env: { ...process.env, SITE: 'slices.example.org', HOME: folder },
      stdio: 'pipe',
    });
  });
});

test('the release runs scripts that the package has', () => {
  const workflow = textOf('.github/workflows/release.yml');
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(textOf('package.json'));
  const names = [...workflow.matchAll(/npm run ([a-z]+)/g)].map(([, name = '']) => name);
  expect(names).toContain('package');
  expect(names.filter((name) => scripts[name] === undefined)).toEqual([]);
  expect(() => parse(workflow)).not.toThrow();
});
