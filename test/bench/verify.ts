import { verify as bareVerify, KeyObject } from 'node:crypto';
import {
  createIssuer,
  generateSigningKey,
  importSigningKey,
  localKeySet,
  verifyConnectivityToken,
} from '../../src/index.ts';
import type { Benchmark } from './benchmark.ts';
import { alternate, milliseconds } from './measure.ts';

const ISSUER = 'https://conn.example.org';
const TOKENS = 200;

/** A reservation as the connectivity service signs it. */
const CONNECTIVITY = {
  id: 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start_date: '2026-12-01T10:00:00.000Z',
  end_date: '2026-12-02T10:00:00.000Z',
  experiment_id: 'exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  created_at: '2026-11-01T12:00:00.000Z',
  created_by: 'user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  site1_s_tag: 100,
  site1_c_tag: 101,
  site2_s_tag: 200,
  site2_c_tag: 201,
};

/** What the exported verifier costs beside the signature's own arithmetic. jose checks the signature, by WebCrypto. */
export const verify: Benchmark = {
  name: 'verify',
  method: `verifyConnectivityToken as exported, awaited one after the other, in turns of ${TOKENS} with bare crypto.verify (ES256, KeyObject, ieee-p1363) on the same token, its parts decoded beforehand`,
  async run({ quick }) {
    const key = await importSigningKey(await generateSigningKey());
    const issuer = createIssuer({ issuer: ISSUER, key });
    const token = await issuer.issue({ sub: CONNECTIVITY.id, connectivity: CONNECTIVITY });
    const keySet = localKeySet(issuer.keySet);
    const trust = { issuers: new Map([[ISSUER, keySet]]) };
    const publicKey = KeyObject.from(await keySet.find(key.kid, 'ES256'));
    const [signed = '', signature = ''] = token.split(/\.(?=[^.]*$)/);
    const [data, bytes] = [Buffer.from(signed), Buffer.from(signature, 'base64url')];
    const verifier = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
    const rounds = await alternate(quick ? 11 : 41, [
      [
        'ours',
        () =>
          milliseconds(async () => {
            for (let time = 0; time < TOKENS; time += 1) await verifyConnectivityToken(token, trust);
          }),
      ],
      [
        'bare',
        () =>
          milliseconds(() => {
            for (let time = 0; time < TOKENS; time += 1) {
              if (!bareVerify('sha256', data, verifier, bytes)) throw new Error('the signature is wrong');
            }
          }),
      ],
    ]);
    const micros = (name: 'ours' | 'bare'): string =>
      `${((rounds.median(name) / TOKENS) * 1000).toFixed(1)} µs`;
    return [
      {
        name: 'verify',
        what: 'tokens verified per second ÷ bare crypto.verify of the same',
        ratio: rounds.ratio('bare', 'ours'),
        // One token after the other, WebCrypto's hand-over to its own thread costs as much as the check. Tokens that
        // verified are remembered, so a service pays this once for each token.
        limit: 0.3,
        bound: 'atLeast',
        measured: `${micros('ours')} each; bare ${micros('bare')}`,
      },
    ];
  },
};
