import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { newDatabase, startPostgres } from '../fixtures/postgres-server.ts';
import { killClients } from './client-kills.ts';
import { killDatabase } from './database-kills.ts';
import { tellReaders } from './events.ts';
import { failOver } from './failovers.ts';
import { proveFailpoints } from './failpoints.ts';
import { cutEveryMessage, fillDisk } from './lost-outcomes.ts';
import { killPlans } from './plan-kills.ts';
import { cutClients } from './power/client.ts';
import { CAN_RECORD } from './power/recording.ts';
import { cutServers } from './power/server.ts';
import { raceOnLinks } from './race.ts';
import { printed, type Report } from './report.ts';
import type { ProofOptions } from './run.ts';
import { killServers } from './server-kills.ts';
import { type OpenedStatements, postgresStatements, sqliteStatements } from './statements.ts';

// `npm run prove`: the long forms of the proofs, one after the other. See README.md.
const { PROVE_SECONDS = '600', PROVE_SEED = String(Date.now() % 1_000_000), PROVE_ONLY = '' } = process.env;
const { values } = parseArgs({
  options: {
    /** About how long all of them take together. */
    seconds: { type: 'string', default: PROVE_SECONDS },
    seed: { type: 'string', default: PROVE_SEED },
    /** Only proofs whose name holds this, such as `server` or `PostgreSQL`. */
    only: { type: 'string', default: PROVE_ONLY },
  },
});
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
if (!(seconds > 0) || !Number.isSafeInteger(seed)) throw new RangeError('--seconds and --seed take numbers');

const postgres = await startPostgres();
const database = async (): Promise<string> => (await newDatabase(postgres.url)).url;

/** A proof by its name, with its share of the time, in percent. */
type Proof = [name: string, share: number, prove: (seconds: number) => Promise<Report>];

/** The same on both engines. */
const onBoth = (name: string, share: number, prove: (options: ProofOptions) => Promise<Report>): Proof[] => [
  [`${name} SQLite`, share, (seconds) => prove({ until: { seconds }, seed })],
  [
    `${name} PostgreSQL`,
    share,
    async (seconds) => prove({ until: { seconds }, seed, postgres: await database() }),
  ],
];
const failpointsOn = async (opening: Promise<OpenedStatements>): Promise<Report> => {
  const opened = await opening;
  return proveFailpoints(opened).finally(() => opened.close());
};
const powerCuts: Proof[] = [
  ['power client', 5, (seconds) => cutClients({ until: { seconds }, seed })],
  ['power server', 5, (seconds) => cutServers({ until: { seconds }, seed })],
];

/** Enumerations have no limit. */
const PROOFS: readonly Proof[] = [
  ...(CAN_RECORD ? powerCuts : []),
  ['failpoints SQLite', 3, () => failpointsOn(sqliteStatements())],
  ['failpoints PostgreSQL', 12, async () => failpointsOn(postgresStatements(await database()))],
  ...onBoth('race', 10, raceOnLinks),
  ...onBoth('server', 15, killServers),
  ['database PostgreSQL', 15, (seconds) => killDatabase(postgres, { until: { seconds }, seed })],
  // Ten promotions each, on servers of their own.
  ...[true, false].map((synchronous): Proof => {
    const name = `failover ${synchronous ? 'synchronous' : 'asynchronous'}`;
    return [name, 15, () => failOver({ until: { kills: 10 }, seed, synchronous })];
  }),
  // What was killed is run again afterwards, in the other part of the time.
  ...onBoth('client', 10, killClients).map(
    ([name, share, prove]): Proof => [name, share, (seconds) => prove(seconds * 0.6)],
  ),
  ...onBoth('plan', 10, killPlans),
  ...onBoth('events', 10, tellReaders),
  ['outcomes PostgreSQL', 15, () => cutEveryMessage(database, { seed })],
  ['outcomes SQLite', 15, () => fillDisk({ seed })],
];

/** Random histories and calendars against the oracle, and pasted alternatives: the suite's own tests in their long form. */
const HISTORIES = 'histories';
/** Two servers and the network between them, see ../packets: each fault ten times, and without tcpdump too. */
const PACKETS = 'packets';
if (!CAN_RECORD)
  process.stdout.write('Power cuts are not tried: strace is not installed, or may not trace.\n');
const isChosen = (name: string): boolean => name.toLowerCase().includes(values.only.toLowerCase());
const chosen = PROOFS.filter(([name]) => isChosen(name));
const whole = chosen.reduce((sum, [, share]) => sum + share, 0);
let found = chosen.length === 0 && !isChosen(HISTORIES) && !isChosen(PACKETS) ? 1 : 0;
try {
  for (const [, share, prove] of chosen) {
    const report = await prove((seconds * share) / whole);
    found += report.findings.length;
    process.stdout.write(`${printed(report)}\n`);
  }
} finally {
  await postgres.close();
}
/** Runs files of the suite in their long form. */
function runSuite(files: readonly string[], env: Readonly<Record<string, string>>): void {
  // However long they take.
  const args = ['run', '--config', 'test/vitest.config.ts', '--testTimeout', '0', ...files];
  const { status } = spawnSync('vitest', args, { stdio: 'inherit', env: { ...env, ...process.env } });
  if (status !== 0) found += 1;
}
if (isChosen(HISTORIES)) {
  const files = [
    ...['allocator/histories', 'allocator/searches', 'allocator/route-use', 'allocator/routed'],
    ...['allocator/common-offset', 'allocator/batch', 'server/identity/once'],
    ...['cli/reservation/pasted-alternatives', 'cli/slices-conversations', 'e2e/run', 'server/http'],
  ].map((name) => `test/${name}.test.ts`);
  runSuite(files, {
    PROVE_HISTORIES: String(Math.ceil(seconds * 10)),
    ...{ PROVE_CALENDARS: '2000', PROVE_PASTED: '500', PROVE_RUN: '2000', PROVE_CONVERSATIONS: '2000' },
    ...{
      PROVE_SEEDS: '8',
      PROVE_BODIES: '20000',
      PROVE_ROUNDS: '20',
      PROVE_ROUTED: '400',
      PROVE_BATCHES: '1000',
    },
  });
}
if (isChosen(PACKETS)) runSuite(['test/packets'], { PROVE_PACKETS: '10' });
process.stdout.write(found === 0 ? 'Nothing was found.\n' : `${found} findings.\n`);
process.exitCode = found === 0 ? 0 : 1;
