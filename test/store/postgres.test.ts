import { usePostgres } from '../fixtures/postgres.ts';
import { openPostgres } from './opened-store.ts';
import { describeStore } from './store-suite.ts';

const postgres = usePostgres();

describeStore('PostgreSQL', async () => openPostgres(await postgres.emptied()));
