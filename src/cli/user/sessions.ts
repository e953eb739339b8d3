import { Failure } from '../../contract/failure.ts';
import { parseInstant } from '../../contract/instants.ts';
import type { Invocation } from '../invocation.ts';
import { escapeText } from '../print/output.ts';
import { shortTime } from '../times.ts';

/** The fewest characters of an id that are taken for it (cli/README.md, "Commands"). */
const LEAST_PART = 4;

/** Lists the user's logins that have not ended, on every machine. */
export async function listSessions({ session, output, times }: Invocation): Promise<void> {
  const sessions = await (await session()).portal.sessions();
  const context = await times();
  const items = sessions.map(({ current: _, ...item }) => item);
  const shown = (text: string): string => {
    const instant = parseInstant(text);
    return instant === undefined ? 'unknown' : shortTime(instant, context);
  };
  await output.result({ items }, (print) => {
    if (items.length === 0) return 'No logins that have not ended.\n';
    const head = ['id', 'client', 'last used', `ends (${context.zone})`];
    const rows = sessions.map(({ id, client_id, last_used_at, expires_at, current }) => [
      id,
      current ? `${client_id} (this login)` : client_id,
      shown(last_used_at),
      shown(expires_at),
    ]);
    if (print.fits(head, rows)) return print.table(head, rows);
    return rows
      .map(([id = '', client = '', used = '', ends = '']) =>
        print.card(escapeText(`${id}  ${client}`), [
          ['last used', used],
          ['ends', `${ends} ${context.zone}`],
        ]),
      )
      .join('');
  });
}

/** Ends one of the user's logins, here or on another machine. */
export async function revokeSession(
  { session, output }: Invocation,
  [wanted = '']: readonly string[],
): Promise<void> {
  const { portal } = await session();
  const sessions = await portal.sessions();
  const { id, client_id, current } = theOne(wanted, sessions);
  await portal.endSession(id);
  await output.result(
    { items: [{ id, revoked: true }] },
    ({ paint }) => `${paint.green('Revoked')} ${escapeText(`${id} (${client_id})`)}\n`,
  );
  if (current) output.notice('That was the login of this command. To log in again: slices-conn login');
}

/** The login with this id, or whose id alone contains it. @throws Failure `not_found`, `usage` */
function theOne<Login extends { id: string }>(wanted: string, sessions: readonly Login[]): Login {
  const exact = sessions.find(({ id }) => id === wanted);
  if (exact) return exact;
  const found = wanted.length < LEAST_PART ? [] : sessions.filter(({ id }) => id.includes(wanted));
  const [only, ...others] = found;
  const fix = 'slices-conn user sessions';
  if (!only) {
    throw new Failure('not_found', `You have no login ${JSON.stringify(wanted)} that has not ended.`, {
      ...(wanted.length < LEAST_PART
        ? { why: `A part of an id has ${LEAST_PART} characters at least.` }
        : {}),
      fix,
    });
  }
  if (others.length === 0) return only;
  const ids = found.map(({ id }) => id).join(', ');
  throw new Failure('usage', `${JSON.stringify(wanted)} is a part of several ids: ${ids}.`, { fix });
}
