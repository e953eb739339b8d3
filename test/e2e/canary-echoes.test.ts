import { describe, expect, test } from 'vitest';
import { newMachine, reportOf } from './command.ts';
import { newClient, pointingAt, providerReply, type Recorded, type Reply, record } from './served.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
/** With characters that JSON may escape and a form must encode. */
const [USER, EXPERIMENT, DEVICE] = ['canary/user+==', 'canary-experiment', 'canary/device+=='];

async function clientAt(answer: (asked: Recorded, url: string) => Reply | 'hang') {
  const { url } = await record(answer);
  const services = pointingAt(url);
  return newClient({ ...services, SLICES_CONN_USER_TOKEN: USER, SLICES_CONN_EXPERIMENT_TOKEN: EXPERIMENT });
}

const refusal = (said: unknown): Reply => ({
  status: 422,
  json: { detail: [{ loc: ['Site'], msg: `you sent ${said}`, type: 'x' }] },
});

/** All that a command printed. */
async function printed(client: Awaited<ReturnType<typeof clientAt>>, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await client.command(...args, '--debug');
  return stdout + stderr;
}

function expectNone(text: string): void {
  // The stack that --debug shows names this file.
  expect(text.replaceAll('canary-echoes.test.ts', '')).not.toMatch(/canary/);
}

describe('a service that repeats what it was sent, in its own spelling', () => {
  test('as it was: it is taken out', async () => {
    const text = await printed(await clientAt(({ headers }) => refusal(headers.authorization)), ...LINK);
    expect(text).toContain('error: you sent Bearer [secret]\n');
    expectNone(text);
  });

  test('the body, where the experiment token is in Authorization', async () => {
    const client = await clientAt(({ body }) => refusal(body));
    await client.command('profile', 'set', 'local', 'tokenPlacement=experiment');
    expectNone(await printed(client, ...LINK));
  });

  test('in a success that is not what it should be', async () => {
    const client = await clientAt(({ headers }) => ({ json: { projects: headers.authorization } }));
    expectNone(await printed(client, 'project', 'list'));
  });

  test('the form of a device login', async () => {
    const client = await clientAt(({ path, body }, url) => {
      if (path === '/auth/token') {
        return { status: 400, json: { error: 'invalid_request', error_description: `you sent ${body}` } };
      }
      return providerReply(path, url, { device_code: DEVICE }) ?? {};
    });
    expectNone(await printed(client, 'login', '--wait', '5'));
  });
});

test('a token command below a file can’t be run: 2, not a bug', async () => {
  const { run } = newMachine();
  const command = JSON.stringify([`${process.execPath}/x`]);
  await run(['profile', 'set', 'local', `userTokenCommand=${command}`]);
  expect(reportOf(await run(['project', 'list', '--json']))).toMatchObject({ code: 'usage', exitCode: 2 });
});
