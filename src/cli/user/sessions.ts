import type { CommandFile } from '../command.ts';
import type { Context } from '../context.ts';
import { theOne } from '../one-of.ts';
import { answeredTime } from '../print/cards.ts';
import { escapeText } from '../print/output.ts';
import { shortTime } from '../times.ts';

/** `slices-conn user sessions [list]`: the logins of the user, of CI jobs too (`login --ci`). */
export const list: CommandFile = { command: {}, run: listSessions };

/** Lists the user's logins that have not ended, on every machine. */
async function listSessions({ session, output, clock: { times } }: Context): Promise<void> {
  const sessions = await (await session()).portal.sessions();
  const context = await times();
  const items = sessions.map(({ current: _, ...item }) => item);
  const shown = (text: string): string => answeredTime(text, (instant) => shortTime(instant, context));
  await output.result({ items }, (print) => {
    if (items.length === 0) return 'No logins that have not ended.\n';
    const head = ['id', 'client', 'last used', `ends (${context.zone})`];
    const rows = sessions.map(({ id, client_id, last_used_at, expires_at, current }) => [
      id,
      current ? `${client_id} (this login)` : client_id,
      shown(last_used_at),
      shown(expires_at),
    ]);
    return print.tableOrCards(head, rows);
  });
}

/** `slices-conn user sessions revoke ID`. */
export const revoke: CommandFile = {
  command: { args: { '<login-id>': 'its id, or a part of it that is in no other id' } },
  run: revokeSession,
};

/** Ends one of the user's logins, here or on another machine. */
async function revokeSession({ session, output }: Context, [wanted = '']: readonly string[]): Promise<void> {
  const { portal } = await session();
  const sessions = await portal.sessions();
  const { id, client_id, current } = theOne(wanted, sessions, {
    missing: `You have no login ${JSON.stringify(wanted)} that has not ended.`,
    fix: 'slices-conn user sessions',
  });
  await portal.endSession(id);
  await output.result(
    { items: [{ id, revoked: true }] },
    ({ paint }) => `${paint.green('Revoked')} ${escapeText(`${id} (${client_id})`)}\n`,
  );
  if (current) output.notice('That was the login of this command. To log in again: slices-conn login');
}
