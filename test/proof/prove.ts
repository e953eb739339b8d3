import { startPostgres } from '../fixtures/postgres-server.ts';
import { killDatabase } from './database-kills.ts';
import { printed } from './report.ts';

const pg = await startPostgres();
console.log(printed(await killDatabase(pg, { seconds: 20, seed: 1 })));
await pg?.close();
