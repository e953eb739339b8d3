import { useEffect, useRef } from 'preact/hooks';
import type { Page } from './page-props.ts';
import { useShown } from './signals.ts';
import type { Subject } from './state.ts';

/** How long the notice of something that was done is shown, in milliseconds. */
const LASTS = 10_000;

/** The one notice of the page, where it is about this subject: it stands in the flow, beside what it is about. */
export function Notice({ page, at }: { page: Page; at: Subject }) {
  const { notice, hasEnded } = useShown(page, (state) => ({
    notice: isSame(state.notice?.at, at) ? state.notice : undefined,
    hasEnded: state.hasEnded,
  }));
  const place = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (!notice) return undefined;
    if (notice.at !== 'page') place.current?.scrollIntoView({ block: 'nearest' });
    if (!notice.isDone) return undefined;
    let timer = setTimeout(leave, LASTS);
    /** It goes by itself, unless someone is at it. */
    function leave(): void {
      const { current } = place;
      if (current?.matches(':hover') || current?.contains(document.activeElement))
        timer = setTimeout(leave, LASTS);
      else page.store.dispatch({ type: 'unsaid', since: 'passed' });
    }
    return () => clearTimeout(timer);
  }, [notice]);
  if (!notice) return null;
  const close = () => page.store.dispatch({ type: 'unsaid', since: 'closed' });
  return (
    <p class="result" data-kind={notice.isDone ? 'done' : 'problem'} ref={place}>
      <span>
        {notice.text.split('\n').map((line) => (
          <span key={line}>{line}</span>
        ))}
      </span>
      {hasEnded && (
        <button type="button" onClick={() => void page.login.logIn()}>
          Log in again
        </button>
      )}
      <button type="button" class="quiet" aria-label="Close" onClick={close}>
        ×
      </button>
    </p>
  );
}

/** The same for readers of the screen. It is always there, so that they know of it before it says something. */
export function SpokenNotice({ page }: { page: Page }) {
  const { notice } = useShown(page, ({ notice: shown }) => ({ notice: shown }));
  const place = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // The same text again is news too: the element is emptied first.
    place.current?.replaceChildren();
    if (notice) place.current?.append(notice.text.replaceAll('\n', '; '));
  }, [notice]);
  return <p class="spoken" role="status" ref={place} />;
}

function isSame(one: Subject | undefined, other: Subject): boolean {
  return one === other || (typeof one === 'object' && typeof other === 'object' && one.id === other.id);
}
