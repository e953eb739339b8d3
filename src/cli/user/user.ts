import type { Experiment, Project } from '../../contract/directory.ts';
import { Failure } from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Session } from '../../session/session.ts';
import {
  claimedClaims,
  claimedExperimentExpiry,
  claimedRole,
  claimedSubject,
  claimedUserName,
} from '../../tokens/claimed.ts';
import type { CommandFile } from '../command.ts';
import type { Context } from '../context.ts';
import { type CardLine, escapeText } from '../print/output.ts';

/** The user of a token, as the token claims it. Null for an opaque token. */
export function userOf(token: string): { sub: string | null; name: string | null } {
  return { sub: claimedSubject(token) ?? null, name: claimedUserName(token) ?? null };
}

/** What a user is in. */
export interface Memberships {
  projects: readonly Project[];
  experiments: readonly Experiment[];
}

/**
 * The user's projects and experiments. A portal without experiments tells of projects only; without a portal, the experiment's token
 * tells of that one.
 *
 * @throws Failure when it can't be asked
 */
export async function membershipsOf(session: Session): Promise<Memberships> {
  const { portal, profile } = session;
  if (profile.portalUrl === undefined)
    return { projects: [], experiments: [await experimentOfToken(session)] };
  const none = (error: unknown): never[] => {
    if (error instanceof Failure && error.code === 'not_supported') return [];
    throw error;
  };
  const projects = await portal.projects();
  return { projects, experiments: await portal.experiments().catch(none) };
}

/** An experiment as its token tells it. @param wanted its id or name; default: the one in use */
export async function experimentOfToken(session: Session, wanted?: string): Promise<Experiment> {
  const named = wanted ?? session.profile.experiment ?? '';
  const { id = '', name = named, token } = await session.access(wanted);
  const role = claimedRole(token.reveal()) ?? '';
  const ends = claimedExperimentExpiry(token.reveal());
  const unknown = { description: '', project_id: '', created_at: '' };
  return { id, name, role, expires_at: ends === undefined ? '' : formatInstant(ends), ...unknown };
}

/** The user's roles in projects and experiments, as the portal tells them. Null: the portal does not tell. */
export function rolesIn({ projects, experiments }: Memberships) {
  const held = (kind: 'project' | 'experiment') => (one: Project | Experiment) => {
    const { id, name, role, expires_at } = one;
    return { kind, id, name: name || null, role: role || null, expires_at: expires_at || null };
  };
  return [...projects.map(held('project')), ...experiments.map(held('experiment'))];
}

/** The most roles that a card shows. */
const MOST_SHOWN = 20;

/** Roles for people, as lines of a card. */
export function roleLines(roles: ReturnType<typeof rolesIn>, { output }: Context): CardLine[] {
  if (roles.length === 0) return [['roles', 'none: you are in no project']];
  const lines = roles.slice(0, MOST_SHOWN).map(({ kind, name, id, role }): CardLine => {
    return [kind, `${name ?? id}: ${role ?? 'role unknown'}`];
  });
  const more = roles.length - MOST_SHOWN;
  return more > 0
    ? [...lines, ['', `and ${more} more: ${output.advised('slices-conn experiment list')}`]]
    : lines;
}

/** `slices-conn user show`, and `slices-conn whoami`. */
export const show: CommandFile = { command: {}, run: showUser };

/** Shows who is logged in, with the roles. */
async function showUser(context: Context): Promise<void> {
  const { session, output } = context;
  const opened = await session();
  const { sub, name } = userOf((await opened.connection.userToken.get()).reveal());
  const roles = rolesIn(await membershipsOf(opened));
  const profile = opened.profile.name;
  await output.result({ sub, name, profile, roles }, (print) =>
    print.card(
      `You are ${print.paint.bold(escapeText(name ?? sub ?? 'unknown: the user token is opaque'))}`,
      [['id', sub ?? 'unknown'], ['profile', profile], ...roleLines(roles, context)],
    ),
  );
}

/** `slices-conn user token`. */
export const token: CommandFile = {
  command: {
    about:
      'Prints the access token, for other tools. It is renewed first when it is almost over.\nWho has it can act as you until it expires.',
  },
  run: userToken,
};

/** Prints the user token. It is not verified: the services that take it do that. */
async function userToken({ session, output }: Context): Promise<void> {
  const token = (await (await session()).connection.userToken.get()).reveal();
  output.text({ token, claims: claimedClaims(token) }, token);
}
