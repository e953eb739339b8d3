import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';

/**
 * The least that a service can do about a booking that it answers signed: read the body, insert one row durably, sign
 * a token with ES256; and about a read, to answer with what was put there. A process of its own, told its database and the file that says where it listens.
 */
const [database = '', ready = ''] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const file = new DatabaseSync(database);
file.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
file.exec('CREATE TABLE booking (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID');
const insert = file.prepare('INSERT INTO booking (id, body) VALUES (?, ?)');
const header = part({ alg: 'ES256', kid: 'key1', typ: 'JWT' });

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** What is read, by its path. */
const kept = new Map<string | undefined, Buffer>();

const server = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    text += chunk;
  });
  request.on('end', () => {
    if (request.method === 'PUT') kept.set(request.url, Buffer.from(text));
    if (request.method !== 'POST') return void response.end(kept.get(request.url));
    const { tokens: _, ...connectivity } = JSON.parse(text);
    const id = randomUUID();
    insert.run(id, JSON.stringify(connectivity));
    const seconds = Math.floor(Date.now() / 1000);
    const claims = { iss: 'http://127.0.0.1', iat: seconds, exp: seconds + 900, sub: id, connectivity };
    const signed = `${header}.${part(claims)}`;
    const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
    response.writeHead(201, { 'content-type': 'application/jwt', location: `/${id}` });
    response.end(`${signed}.${signature.toString('base64url')}`);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const draft = `${ready}.tmp`;
  writeFileSync(draft, `${JSON.stringify({ base_url: `http://127.0.0.1:${address.port}` })}\n`);
  renameSync(draft, ready);
});
process.once('SIGTERM', () => {
  server.close(() => file.close());
  server.closeAllConnections();
});
