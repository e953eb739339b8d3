import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { newDatabase, startPostgres } from '../fixtures/postgres-server.ts';
import { killClients } from './client-kills.ts';
import { killDatabase } from './database-kills.ts';
import { failOver } from './failovers.ts';
import { proveFailpoints } from './failpoints.ts';
import { cutEveryMessage, fillDisk } from './lost-outcomes.ts';
import { killPlans } from './plan-kills.ts';
import { cutClients } from './power/client.ts';
import { CAN_RECORD } from './power/recording.ts';
import { cutServers } from './power/server.ts';
import { raceOnLinks } from './race.ts';
import { printed, type Report } from './report.ts';
import { killServers } from './server-kills.ts';
import { postgresStatements, sqliteStatements } from './statements.ts';

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

/** Each with its share of the time, in percent. Enumerations have no limit. */
const PROOFS: readonly { name: string; share: number; prove: (seconds: number) => Promise<Report> }[] = [
  ...(CAN_RECORD
    ? [
        {
          name: 'power client',
          share: 5,
          prove: (share: number) => cutClients({ until: { seconds: share }, seed }),
        },
        {
          name: 'power server',
          share: 5,
          prove: (share: number) => cutServers({ until: { seconds: share }, seed }),
        },
      ]
    : []),
  {
    name: 'failpoints SQLite',
    share: 3,
    prove: async () => {
      const opened = await sqliteStatements();
      return proveFailpoints(opened).finally(() => opened.close());
    },
  },
  {
    name: 'failpoints PostgreSQL',
    share: 12,
    prove: async () => {
      const opened = await postgresStatements(await database());
      return proveFailpoints(opened).finally(() => opened.close());
    },
  },
  { name: 'race SQLite', share: 10, prove: (share) => raceOnLinks({ until: { seconds: share }, seed }) },
  {
    name: 'race PostgreSQL',
    share: 10,
    prove: async (share) => raceOnLinks({ until: { seconds: share }, seed, postgres: await database() }),
  },
  { name: 'server SQLite', share: 15, prove: (share) => killServers({ until: { seconds: share }, seed }) },
  {
    name: 'server PostgreSQL',
    share: 15,
    prove: async (share) => killServers({ until: { seconds: share }, seed, postgres: await database() }),
  },
  {
    name: 'database PostgreSQL',
    share: 15,
    prove: (share) => killDatabase(postgres, { until: { seconds: share }, seed }),
  },
  // Ten promotions each, on servers of their own.
  {
    name: 'failover synchronous',
    share: 15,
    prove: () => failOver({ until: { kills: 10 }, seed, synchronous: true }),
  },
  {
    name: 'failover asynchronous',
    share: 15,
    prove: () => failOver({ until: { kills: 10 }, seed, synchronous: false }),
  },
  // What was killed is run again afterwards, in the other part of the time.
  {
    name: 'client SQLite',
    share: 10,
    prove: (share) => killClients({ until: { seconds: share * 0.6 }, seed }),
  },
  {
    name: 'client PostgreSQL',
    share: 10,
    prove: async (share) =>
      killClients({ until: { seconds: share * 0.6 }, seed, postgres: await database() }),
  },
  { name: 'plan SQLite', share: 10, prove: (share) => killPlans({ until: { seconds: share }, seed }) },
  {
    name: 'plan PostgreSQL',
    share: 10,
    prove: async (share) => killPlans({ until: { seconds: share }, seed, postgres: await database() }),
  },
  {
    name: 'outcomes PostgreSQL',
    share: 15,
    prove: () => cutEveryMessage(database, { seed }),
  },
  { name: 'outcomes SQLite', share: 15, prove: () => fillDisk({ seed }) },
];

/** Random histories and calendars against the oracle, and pasted alternatives: the suite's own tests in their long form. */
const HISTORIES = 'histories';
/** Two servers and the network between them, see ../packets: each fault ten times, and without tcpdump too. */
const PACKETS = 'packets';
if (!CAN_RECORD)
  process.stdout.write('Power cuts are not tried: strace is not installed, or may not trace.\n');
const isChosen = (name: string): boolean => name.toLowerCase().includes(values.only.toLowerCase());
const chosen = PROOFS.filter(({ name }) => isChosen(name));
const whole = chosen.reduce((sum, { share }) => sum + share, 0);
let found = chosen.length === 0 && !isChosen(HISTORIES) && !isChosen(PACKETS) ? 1 : 0;
try {
  for (const { share, prove } of chosen) {
    const report = await prove((seconds * share) / whole);
    found += report.findings.length;
    process.stdout.write(`${printed(report)}\n`);
  }
} finally {
  await postgres.close();
}
if (isChosen(HISTORIES)) {
  const { status } = spawnSync(
    'vitest',
    [
      ...['run', '--config', 'test/vitest.config.ts'],
      ...['test/allocator/histories.test.ts', 'test/allocator/searches.test.ts'],
      ...['test/cli/reservation/pasted-alternatives.test.ts', 'test/e2e/run.test.ts'],
      ...[
        'test/allocator/load-profile.test.ts',
        'test/server/http.test.ts',
        'test/server/identity/once.test.ts',
      ],
    ],
    {
      stdio: 'inherit',
      env: {
        PROVE_HISTORIES: String(Math.ceil(seconds * 10)),
        PROVE_CALENDARS: '2000',
        PROVE_PASTED: '500',
        PROVE_RUN: '2000',
        PROVE_SEEDS: '8',
        PROVE_BODIES: '20000',
        PROVE_ROUNDS: '20',
        ...process.env,
      },
    },
  );
  if (status !== 0) found += 1;
}
if (isChosen(PACKETS)) {
  const { status } = spawnSync('vitest', ['run', '--config', 'test/vitest.config.ts', 'test/packets'], {
    stdio: 'inherit',
    env: { PROVE_PACKETS: '10', ...process.env },
  });
  if (status !== 0) found += 1;
}
process.stdout.write(found === 0 ? 'Nothing was found.\n' : `${found} findings.\n`);
process.exitCode = found === 0 ? 0 : 1;
