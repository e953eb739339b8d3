import { Failure, type FailureFacts, shellWord } from '../contract/failure.ts';
import { systemReason } from '../contract/foreign-errors.ts';
import { ROUTES, type RouteName } from '../contract/routes.ts';
import type { Incoming, Outgoing, Send } from '../contract/sending.ts';

/** Why a command stops: SIGINT (interrupted) or SIGTERM (terminated). */
export type Stopped = 'interrupted' | 'terminated';

const SAYS = { interrupted: 'Interrupted.', terminated: 'Stopped.' } as const satisfies Record<
  Stopped,
  string
>;

/** Whether a reply says that nothing was done: any 4xx except 408. */
const isRefusal = ({ status }: Incoming): boolean => status >= 400 && status < 500 && status !== 408;

/**
 * The requests of a command that change something at a service and may have taken effect: sent, and not
 * refused (THREATS.md 44).
 */
export class SentChanges {
  readonly #sent = new Set<Outgoing>();
  #begun = false;
  #settled: FailureFacts | 'as expected' | undefined;

  /** The same way; its requests that change something are remembered until they are refused. */
  watched(send: Send): Send {
    this.#begun = true;
    return async (request) => {
      const isRehearsal = new URL(request.url).searchParams.get('dry_run') === 'true';
      if (request.method === 'GET' || isRehearsal) return send(request);
      this.#sent.add(request);
      try {
        const response = await send(request);
        if (isRefusal(response)) this.#sent.delete(request);
        return response;
      } catch (error) {
        if (error instanceof Failure && !error.facts.maybeDone) this.#sent.delete(request);
        throw error;
      }
    };
  }

  /**
   * All is answered that was sent; from now on a stop is told with these facts.
   *
   * @param facts 'as expected': a stop is how the command ends
   */
  settle(facts: FailureFacts | 'as expected'): void {
    this.#settled = facts;
  }

  /** Whether there is nothing to tell a person who stops the command. */
  get isStopExpected(): boolean {
    return this.#settled === 'as expected';
  }

  /** Whether services were used, and certainly nothing was changed, there or here. */
  get isNothing(): boolean {
    return this.#begun && this.#sent.size === 0 && typeof this.#settled !== 'object';
  }

  /** The failure to report when standard output takes no result, such as on a full disk. */
  unwritten(cause: Error): Failure {
    const { facts } = this.failure('terminated');
    const why = [systemReason(cause), facts.why].filter((part) => part !== undefined).join(' ');
    return new Failure('file_unusable', "The result can't be written to standard output.", {
      ...facts,
      why,
      cause,
    });
  }

  /** The failure to report when the command is stopped now. */
  failure(stopped: Stopped): Failure {
    if (this.#settled) {
      return new Failure(stopped, SAYS[stopped], this.#settled === 'as expected' ? {} : this.#settled);
    }
    const [request, another] = this.#sent;
    if (!request) {
      return new Failure(stopped, SAYS[stopped], this.isNothing ? { why: 'Nothing was changed.' } : {});
    }
    const facts = another ? { fix: 'slices-conn list --all' } : nextStep(request);
    const what = another ? 'Requests were sent' : 'The request was sent';
    return new Failure(stopped, SAYS[stopped], {
      why: `${what} and may have taken effect.`,
      maybeDone: true,
      ...facts,
    });
  }
}

/** The command that shows whether a request to a route has taken effect. A reservation has one of its own. */
const SHOWN_BY = Object.entries({
  createReservation: 'slices-conn list',
  batchReservations: 'slices-conn list --all',
  createExperiment: 'slices-conn experiment list',
  addCiRule: 'slices-conn experiment ci list',
  removeCiRule: 'slices-conn experiment ci list',
  endSession: 'slices-conn user sessions',
} satisfies Partial<Record<RouteName, string>>) as [RouteName, string][];

/** The command that shows whether a request has taken effect. None for a request of a login. */
function nextStep(request: Outgoing): FailureFacts {
  const [, fix] = SHOWN_BY.find(([name]) => isTo(name, request)) ?? [];
  if (fix !== undefined) return { fix };
  if (!isTo('updateReservation', request) && !isTo('deleteReservation', request)) return {};
  const { pathname } = new URL(request.url);
  const id = decodeURIComponent(pathname.slice(pathname.lastIndexOf('/') + 1));
  return { reservation: id, fix: `slices-conn show ${shellWord(id)}` };
}

/** Whether a request is to a route of this name, below any base address. */
function isTo(name: RouteName, { method, url }: Outgoing): boolean {
  const due = ROUTES[name].path.split('/');
  const parts = new URL(url).pathname.split('/').slice(1 - due.length);
  const isPath = due.slice(1).every((part, at) => part.startsWith('{') || part === parts[at]);
  return method === ROUTES[name].method && isPath;
}
