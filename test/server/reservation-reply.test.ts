import { expect, test } from 'vitest';
import { CommitUnknownError, StoreUnavailableError } from '../../src/allocator/store.ts';
import { answerReservation, signReservation } from '../../src/server/connectivity/reservation-reply.ts';
import { createKeyRing, type KeyStore } from '../../src/server/keys/key-ring.ts';
import { createServiceIssuer } from '../../src/server/keys/service-issuer.ts';
import { noLog } from '../../src/server/log.ts';
import { openStores } from '../../src/store/stores.ts';
import { DAY, NOW, SIGNED } from '../fixtures/service.ts';
import { oneHop } from '../store/one-link.ts';

const RECORD = oneHop({
  id: 'con_conn.example.org_1',
  link: 'be-gent1~pl-poznan1',
  start: NOW,
  end: NOW + DAY,
  bandwidth: 100,
  tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 },
  experiment: 'exp_conn.example.org_1',
  tenant: 'proj_conn.example.org_1',
  createdBy: 'user_conn.example.org_1',
  createdAt: NOW,
});

test('a database that fails after a booking, before the expiry is stored: the reply does not say that nothing was changed', async () => {
  const stores = await openStores(':memory:');
  const store: KeyStore = {
    ...stores.keys,
    note: async () => {
      throw new StoreUnavailableError('away');
    },
  };
  const ring = createKeyRing({ service: 'connectivity', store, now: () => NOW, log: noLog });
  const issuer = createServiceIssuer('https://conn.example.org', ring, () => NOW);
  const options = { issuer, now: () => NOW };
  const signed = new Request('https://conn.example.org/', { headers: SIGNED });

  await expect(answerReservation(signed, RECORD, options, { committed: true })).rejects.toThrow(
    CommitUnknownError,
  );
  await expect(answerReservation(signed, RECORD, options)).rejects.not.toThrow(CommitUnknownError);
  await expect(signReservation(RECORD, options)).rejects.toThrow(CommitUnknownError);
  // What is not signed needs no note.
  const plain = await answerReservation(new Request('https://conn.example.org/'), RECORD, options, {
    committed: true,
  });
  expect(await plain.json()).toMatchObject({ id: RECORD.id });
  await stores.close();
});
