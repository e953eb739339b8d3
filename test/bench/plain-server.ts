import { hash, randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import fastify, { type FastifyRequest } from 'fastify';
import { createRemoteJWKSet, decodeJwt, type JWTPayload, jwtVerify } from 'jose';
import { newId } from '../../src/contract/fields.ts';
import { EXPERIMENT_TOKEN_HEADER, KEY_SET_PATH, ROUTES, routePath } from '../../src/contract/routes.ts';
import { writeReady } from './serving.ts';

/**
 * Creates and reads as most services would with Fastify, node:sqlite and jose. It has no links, limits, events, audit or
 * log. A row keeps the text of its answer. Arguments: the database, the file that says where it listens, and the server
 * whose tokens it trusts.
 */
const [database = '', ready = '', trusted = ''] = process.argv.slice(2);
const sql = new DatabaseSync(database);
sql.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = EXTRA;
  CREATE TABLE reservation (id TEXT PRIMARY KEY, experiment TEXT NOT NULL, answer TEXT NOT NULL) STRICT;
  CREATE INDEX reservation_experiment ON reservation (experiment, id)`);
const insert = sql.prepare('INSERT INTO reservation (id, experiment, answer) VALUES (?, ?, ?)');
const find = sql.prepare('SELECT experiment, answer FROM reservation WHERE id = ?');
const list = sql.prepare(
  'SELECT id, answer FROM reservation WHERE experiment = ? AND id > ? ORDER BY id LIMIT ?',
);

const keySets = new Map(
  ['auth', 'portal'].map((service) => {
    const issuer = `${trusted}/${service}`;
    return [issuer, createRemoteJWKSet(new URL(issuer + KEY_SET_PATH))];
  }),
);
/** The claims of tokens that verified, by the tokens' SHA-256, as ours keeps them. */
const known = new Map<string, JWTPayload>();

async function verified(token: string): Promise<JWTPayload> {
  const name = hash('sha256', token, 'base64url');
  let claims = known.get(name);
  if (!claims) {
    const { iss: issuer = '' } = decodeJwt(token);
    const keys = keySets.get(issuer);
    if (!keys) throw new RangeError(`${issuer} is not trusted`);
    claims = (await jwtVerify(token, keys, { issuer, algorithms: ['ES256'] })).payload;
    known.set(name, claims);
  }
  if ((claims.exp ?? 0) * 1000 <= Date.now()) throw new RangeError('the token has expired');
  return claims;
}

/** The user and the experiment that the two tokens of a request name. */
async function callerOf({ headers }: FastifyRequest): Promise<{ user: string; experiment: string }> {
  const user = await verified((headers.authorization ?? '').slice('Bearer '.length));
  const experiment = await verified(String(headers[EXPERIMENT_TOKEN_HEADER.toLowerCase()]));
  const { sub: actor, role } = experiment['act'] as { sub: string; role: string };
  if (actor !== user.sub || role !== 'lead') throw new RangeError('the caller may not do that');
  return { user: actor, experiment: String(experiment.sub) };
}

const text = { type: 'string' } as const;
const body = {
  type: 'object',
  required: ['site1', 'site2', 'bandwidth', 'start_date', 'end_date'],
  properties: {
    ...{ site1: text, site2: text, bandwidth: { type: 'string', pattern: '^[0-9]+$' } },
    ...{ start_date: { ...text, format: 'date-time' }, end_date: { ...text, format: 'date-time' } },
    tokens: { type: 'array', maxItems: 8, items: text },
  },
} as const;
interface Body {
  site1: string;
  site2: string;
  bandwidth: string;
  start_date: string;
  end_date: string;
  tokens?: string[];
}

const app = fastify();
app.post<{ Body: Body }>(routePath('createReservation'), { schema: { body } }, async (request, reply) => {
  const { user, experiment } = await callerOf(request);
  const { tokens = [], bandwidth, ...asked } = request.body;
  for (const token of tokens) await verified(token);
  const now = Date.now();
  const id = newId('reservation', '127.0.0.1', now, randomBytes(10));
  const [start, end] = [new Date(asked.start_date), new Date(asked.end_date)];
  const answer = JSON.stringify({
    ...{ id, site1: asked.site1, site2: asked.site2, bandwidth: Number(bandwidth) },
    ...{ start_date: start.toISOString(), end_date: end.toISOString(), experiment_id: experiment },
    ...{ created_at: new Date(now).toISOString(), created_by: user },
    ...{ site1_s_tag: 1000, site1_c_tag: 2000, site2_s_tag: 1000, site2_c_tag: 2000 },
  });
  insert.run(id, experiment, answer);
  reply.code(201).header('location', `${request.url}${id}`).header('cache-control', 'no-store');
  return reply.type('application/json').send(answer);
});
app.get<{ Params: { id: string } }>(
  ROUTES.readReservation.path.replace('{id}', ':id'),
  async (request, reply) => {
    const { experiment } = await callerOf(request);
    const row = find.get(request.params.id);
    if (row?.['experiment'] !== experiment) return reply.code(404).send({ code: 'not_found' });
    return reply.header('cache-control', 'no-store').type('application/json').send(row['answer']);
  },
);
app.get<{ Querystring: { cursor?: string } }>(routePath('listReservations'), async (request, reply) => {
  const { experiment } = await callerOf(request);
  const found = list.all(experiment, request.query.cursor ?? '', 101);
  const page = found.slice(0, 100);
  const next = found.length > 100 ? page.at(-1)?.['id'] : null;
  const items = page.map(({ answer }) => answer).join(',');
  const answer = `{"items":[${items}],"nextCursor":${JSON.stringify(next)}}`;
  const tag = `W/"${hash('sha256', answer, 'base64url').slice(0, 22)}"`;
  reply.header('etag', tag).header('cache-control', 'private, no-cache');
  if (request.headers['if-none-match'] === tag) return reply.code(304).send();
  return reply.type('application/json').send(answer);
});
writeReady(ready, await app.listen({ host: '127.0.0.1', port: 0 }));
process.once('SIGTERM', () => void app.close().then(() => sql.close()));
