import type { Experiment } from '../../contract/directory.ts';
import { Failure, failureOrThrow } from '../../contract/failure.ts';
import { isNamed } from '../../session/choice.ts';
import { givenAccess } from '../../session/login/experiment-access.ts';
import type { Session } from '../../session/session.ts';
import type { Context } from '../context.ts';
import { openProfiles } from '../global-options.ts';
import type { CardLine } from '../print/output.ts';

/**
 * The experiment that the next command acts in; no person is asked to choose, and no token is fetched.
 *
 * @param experiments those that the portal tells
 * @returns the experiment and what has chosen it: `only`, it is the only active one; `where` is the flag, variable or profile, for
 *   people. A failure, as a value, where no experiment is chosen, or the portal has none of that name
 */
export async function experimentInUse(
  context: Context,
  session: Session,
  experiments: readonly Experiment[],
) {
  const { flags } = context;
  const { profile } = session;
  const token = await givenAccess(flags.experiment, session.connection.experimentToken);
  if (token)
    return { id: token.id ?? null, name: token.name ?? null, from: 'variable', where: token.where } as const;
  const chosen = await session.experimentIn(experiments).catch(failureOrThrow);
  if (chosen instanceof Failure) return chosen;
  const { variable } = (await openProfiles(context)).inspect(profile.name).entries.experiment;
  const chosenBy =
    flags.experiment !== undefined
      ? ({ from: 'flag', where: '--experiment' } as const)
      : !isNamed(chosen, profile.experiment, profile)
        ? ({ from: 'only', where: 'the only active one' } as const)
        : variable === undefined
          ? ({ from: 'profile', where: `profile ${profile.name}` } as const)
          : ({ from: 'variable', where: variable } as const);
  return { id: chosen.id, name: chosen.name || null, ...chosenBy };
}

/** The experiment in use as a line of a card. */
export function inUseLine(used: Awaited<ReturnType<typeof experimentInUse>>): CardLine {
  if (used instanceof Failure) return ['in use', `no experiment: ${used.message}`];
  const by = used.from === 'only' ? used.where : `chosen by ${used.where}`;
  return ['in use', `${used.name ?? used.id ?? 'an experiment without a name'}, ${by}`];
}
