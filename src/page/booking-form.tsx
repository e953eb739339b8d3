import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Alternative } from '../contract/problems.ts';
import { linkName } from '../words/links.ts';
import { BookingFields } from './booking-fields.tsx';
import { type Draft, withAlternative } from './draft.ts';
import { Notice } from './notice.tsx';
import type { Page } from './page-props.ts';
import { routeText } from './route.ts';
import type { NetworkFacts } from './service.ts';
import { focusForm } from './sights.ts';
import { useShown } from './signals.ts';
import {
  calendarOf,
  draftRoute,
  formParts,
  isRepeatable,
  isTyped,
  mayDo,
  openRequest,
  readForm,
  routeParts,
  type State,
} from './state.ts';
import { remembered } from './store.ts';
import { fitText, offerText, openText, refusalText } from './words.ts';

/** The words of the form: for a new reservation, and for a change of one. */
const WORDS = {
  create: { send: 'Book', sending: 'Booking…', refused: 'Not booked: ', stop: 'Clear the form' },
  update: {
    send: 'Save the change',
    sending: 'Saving…',
    refused: 'Not changed: ',
    stop: 'Leave it as it is',
  },
};
const wordsFor = ({ id }: Draft) => WORDS[id === undefined ? 'create' : 'update'];

const routeOfDraft = remembered(routeParts, draftRoute);

/** The parts of the state that the form shows. */
function formView(state: State) {
  const { isChecked, isLeft, isSending, login, hasEnded, sent } = state;
  return {
    ...formParts(state),
    ...{ isChecked, isLeft, isSending, login, hasEnded, sent, route: routeOfDraft(state) },
  };
}
type FormView = ReturnType<typeof formView>;

/** What can be done in the form now. */
function formUse(view: FormView) {
  const { draft, login, hasEnded } = view;
  const open = openRequest(view);
  const isUser = login?.user != null;
  const mayBook = isUser && mayDo(view, draft.id === undefined ? 'create' : 'update');
  /** Fields are shown; also those of a user whose login has ended. */
  const isFilled = mayBook || (hasEnded && isTyped(view));
  return { open, isFilled, isShown: isFilled || (open !== undefined && (isUser || hasEnded)) };
}

/** The form that books a link, or changes a reservation. */
export function BookingForm({ page, network: { links } }: { page: Page; network: NetworkFacts }) {
  const view = useShown(page, formView);
  const form = useRef<HTMLFormElement>(null);
  useFocus(form, view);
  const { booking, store } = page;
  const { draft, isSending } = view;
  const { open, isFilled, isShown } = formUse(view);
  if (!isShown) return null;
  const words = wordsFor(draft);
  const leave = (): void => {
    booking.reset();
    if (draft.id !== undefined) return;
    page.move({ type: 'cleared' });
    store.dispatch({ type: 'learnt', facts: { selected: undefined } });
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    // Enter in a field would send what is not in the fields.
    if (open) form.current?.querySelector<HTMLElement>('[data-kind=unanswered]')?.focus();
    else void booking.send();
  };
  const title = draft.name === '' ? linkName(draft) : draft.name;
  const isQuiet = view.answer.kind === 'refused';
  return (
    <form class="booking beside" aria-labelledby="booking-heading" noValidate ref={form} onSubmit={submit}>
      <h2 id="booking-heading" tabIndex={-1}>
        {draft.id === undefined ? 'Book a link' : `Change ${title}`}
      </h2>
      {isFilled && <BookingFields {...view} page={page} links={links} problems={readForm(view).problems} />}
      <div class="outcome">
        <div class="actions">
          {isFilled && !open && (
            <button
              type="submit"
              class={isQuiet ? 'quiet' : undefined}
              aria-disabled={isSending || view.isLeft || view.answer.kind === 'moved'}
            >
              {isSending ? words.sending : words.send}
            </button>
          )}
          {isFilled && (
            <button type="button" class="quiet" onClick={leave}>
              {words.stop}
            </button>
          )}
        </div>
        <Notice page={page} at="form" />
        <Outcome page={page} view={view} isFilled={isFilled} />
        {open && <Unsettled page={page} view={view} open={open} />}
      </div>
    </form>
  );
}

/** What the service says about the draft, and what it would accept in its place. */
function Outcome({ page, view, isFilled }: { page: Page; view: FormView; isFilled: boolean }) {
  const { answer, draft } = view;
  const offers = offersIn(view);
  return (
    <>
      <p class="answer" role="status" tabIndex={-1} data-kind={answer.kind} hidden={!isFilled}>
        {statusText(view, offers.length > 0)}
      </p>
      {answer.kind === 'refused' && offers.length > 0 && (
        <ul class="alternatives" aria-label="What would be accepted">
          {offers.map((offer) => (
            <li key={offer.kind}>
              <button
                type="button"
                class="alternative"
                onClick={({ currentTarget: { form } }) => {
                  page.booking.fill(withAlternative(draft, offer, answer.wish.period));
                  form?.querySelector<HTMLElement>('[type=submit]')?.focus();
                }}
              >
                {offerText(offer, answer.wish, calendarOf(view))}
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The request that has no answer. It takes the place of sending another one. */
function Unsettled({
  page,
  view,
  open,
}: {
  page: Page;
  view: FormView;
  open: NonNullable<ReturnType<typeof openRequest>>;
}) {
  const { login, chosen, now } = view;
  const there = login?.experiments.find(({ id }) => id === open.experiment);
  const experiment = there && there.id !== chosen?.id ? there.name : undefined;
  return (
    <div class="unsettled">
      <p class="answer" data-kind="unanswered" tabIndex={-1}>
        {openText(open, experiment, calendarOf(view))}
      </p>
      <div class="actions">
        {isRepeatable(open, now) && (
          <button type="button" onClick={() => void page.booking.send()}>
            Send it again
          </button>
        )}
        <button type="button" class="quiet" onClick={page.forget}>
          Forget it
        </button>
      </div>
    </div>
  );
}

/** Leads to the form from what is picked, where the form is not beside it. It stays in view, and moves nothing. */
export function BookThis({ page }: { page: Page }) {
  const view = useShown(page, formView);
  const { open, isFilled } = formUse(view);
  const { draft, isLeft } = view;
  if (!isFilled || open || isLeft || draft.site1 === '' || draft.site2 === '') return null;
  return (
    <p class="entry">
      <span>{routeText([draft.site1, draft.site2])}</span>
      <button type="button" id="book-this" onClick={focusForm}>
        {draft.id === undefined ? 'Book this' : 'Change this'}
      </button>
    </p>
  );
}

/** Leads the eyes and the keyboard to what has changed in the form: what is missing, why it was refused, what is not settled. */
function useFocus(form: { current: HTMLFormElement | null }, view: FormView): void {
  const before = useRef(view);
  useLayoutEffect(() => {
    const { isSending: wasSending, isChecked: wasChecked } = before.current;
    before.current = view;
    const find = (selector: string) => form.current?.querySelector<HTMLElement>(selector);
    const wrong = find('[aria-invalid=true]:not(:disabled)');
    if (view.isChecked && !wasChecked) wrong?.focus();
    if (!wasSending || view.isSending) return;
    // The button that was clicked is gone.
    if (openRequest(view)) find('[data-kind=unanswered]')?.focus();
    else if (view.answer.kind === 'refused') {
      const status = find('.answer');
      status?.scrollIntoView({ block: 'nearest' });
      (wrong?.id === 'name' ? wrong : status)?.focus();
    }
  }, [view]);
}

/** The alternatives that would be accepted. A user who keeps the start of a reservation does not want another one. */
function offersIn({ answer, draft, live }: FormView): readonly Alternative[] {
  if (answer.kind !== 'refused') return [];
  const { alternatives } = answer.facts;
  const isKept = draft.id !== undefined && draft.start === live?.find(({ id }) => id === draft.id)?.start;
  return isKept ? alternatives.filter(({ kind }) => kind !== 'earliest') : alternatives;
}

/** The form's sentence about its draft. */
function statusText(view: FormView, hasOffers: boolean): string {
  const { answer, draft, isSending, hasEnded, isLeft, isChecked } = view;
  if (isSending) return '';
  if (isLeft && isChecked) return 'This is booked. Change something to book another one.';
  switch (answer.kind) {
    case 'none':
      return '';
    case 'moved':
    case 'asking':
      return 'Asking whether it fits…';
    case 'fits':
      return fitText(answer, calendarOf(view));
    case 'refused': {
      // The notice says it.
      if (hasEnded && !answer.isSent && answer.facts.code === 'token_missing') return '';
      const why = refusalText(answer.facts, calendarOf(view));
      return `${answer.isSent ? wordsFor(draft).refused : ''}${why}${hasOffers ? ' Would be accepted:' : ''}`;
    }
    case 'away':
      return 'It is not known whether it fits: no answer came. What you typed is kept.';
  }
}
