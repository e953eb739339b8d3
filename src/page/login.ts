import { readView } from './address.ts';
import { type PageContext, say, tell } from './context.ts';
import { Refused, Unanswered } from './service.ts';

/** See {@link createLogin}. */
export type PageLogin = ReturnType<typeof createLogin>;

/** The reason why no login is possible, where the browser forbids it. */
const NOT_KEPT = `You are not logged in: your browser keeps no cookies or no data of this page. Allow both for ${location.host}, and log in again.`;

/**
 * The login of the page: its begin, its end, and who it is. Where the browser comes back from the identity provider, that login is
 * ended first.
 */
export function createLogin(context: PageContext) {
  const { store, service, base, lasting, passing } = context;
  let visit = new AbortController();
  const cameBack = comeBack();

  function failed(error: unknown): void {
    if (error instanceof Refused || error instanceof Unanswered)
      say(context, `The login failed. ${error.message}`, 'page');
    else context.failed(error);
  }

  /** @returns whether the browser has come back, and somebody is logged in */
  async function comeBack(): Promise<boolean> {
    const { pathname, search } = location;
    if (pathname !== new URL('callback', base).pathname) return false;
    history.replaceState(null, '', new URL(`..${passing.get('view') ?? ''}`, base));
    const begun = passing.get('login') ?? '';
    // It is used once.
    passing.set('login', null);
    try {
      const isKept = lasting.set('session', await service.endLogin(search, begun));
      if (!isKept) say(context, NOT_KEPT, 'page');
      return isKept;
    } catch (error) {
      failed(error);
      return false;
    }
  }

  /** Forgets what only a user may see. */
  function leave(): void {
    visit.abort();
    store.dispatch({ type: 'logged-out' });
  }

  return {
    /** Aborted when the login ends: what is asked for as a user is given up then. */
    get visit(): AbortSignal {
      return visit.signal;
    },
    /** Sends the browser to the identity provider, from where it comes back to this page. */
    async logIn(): Promise<void> {
      try {
        const { address, begun } = await service.beginLogin();
        passing.set('view', location.search);
        if (passing.set('login', begun)) location.assign(address);
        else say(context, NOT_KEPT, 'page');
      } catch (error) {
        failed(error);
      }
    },
    async logOut(): Promise<void> {
      store.dispatch({ type: 'unsaid', since: 'closed' });
      visit.abort();
      try {
        await service.logOut();
        lasting.set('session', null);
        leave();
        say(context, 'You are logged out.', 'page', true);
      } catch (error) {
        visit = new AbortController();
        tell(context, error, 'page');
      }
    },
    /** Asks who is logged in. */
    async load(): Promise<void> {
      const hasLoggedIn = await cameBack;
      const { login: before } = store.state;
      const secret = lasting.get('session');
      const login = await service.session();
      if (login.user === null) {
        if (hasLoggedIn && !before) say(context, NOT_KEPT, 'page');
        // It may have ended while the page was closed.
        else if (before?.user || secret !== null) store.dispatch({ type: 'login-ended' });
        // Another tab may have logged in meanwhile.
        if (lasting.get('session') === secret) lasting.set('session', null);
        leave();
        return;
      }
      if (visit.signal.aborted || before?.user?.id !== login.user.id) visit = new AbortController();
      const wanted = readView(location.search).experiment ?? lasting.get('experiment');
      store.dispatch({ type: 'logged-in', login, wanted });
    },
  };
}
