import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { instantText } from '../words/civil-time.ts';
import type { Draft, Field, ReadDraft } from './draft.ts';
import type { Page } from './page-props.ts';
import { type Route, routesFrom } from './route.ts';
import type { Link } from './service.ts';
import { calendarOf, type State } from './state.ts';
import { readWall, routeNote, wallText } from './words.ts';

/** The sentence for each field that is empty when the form is sent. */
const MISSING: Readonly<Record<Field, string>> = {
  site1: 'Choose a site.',
  site2: 'Choose a site.',
  bandwidth: 'Say how much, such as 1G.',
  start: 'Say when it starts, such as now.',
  ending: 'Say how long, such as 2h, or until when.',
  name: '',
};

/** What the fields show. */
export interface FieldsProps extends Pick<State, 'draft' | 'zone' | 'now' | 'isChecked'> {
  page: Page;
  links: readonly Link[];
  problems: ReadDraft['problems'];
  /** The route of the draft, as far as it is known. */
  route?: Route;
}

/** The fields of the form. What is typed in one is in the draft at once. */
export function BookingFields(props: FieldsProps) {
  const { page, draft, links, route } = props;
  const { booking } = page;
  const isNew = draft.id === undefined;
  const type = (part: Partial<Draft>): void => booking.type({ ...draft, ...part });
  return (
    <div class="fields">
      <SiteField {...props} field="site1" label="Site 1" sites={sitesOf(links)} />
      <SiteField {...props} field="site2" label="Site 2" sites={othersOf(links, draft.site1)} />
      {route && (
        <small class="route" id="route">
          {routeNote(route)}
        </small>
      )}
      <Labelled {...props} field="bandwidth" label="Bandwidth" such="Such as 100M, 2.5G.">
        <TextInput
          {...props}
          field="bandwidth"
          value={draft.bandwidth}
          type={(bandwidth) => type({ bandwidth })}
        />
      </Labelled>
      {isNew && (
        <Labelled {...props} field="name" label="Name (optional)" such="All members see it.">
          <TextInput
            {...props}
            field="name"
            value={draft.name}
            type={(name) => type({ name: name.trim() })}
          />
        </Labelled>
      )}
      <Labelled {...props} field="start" label="Start" such="now, friday 09:00, 4 dec 14:00">
        <TimeInput {...props} field="start" time={draft.start} part={(start) => ({ start })} />
        {isNew && (
          <button
            type="button"
            class="quiet"
            title="The first time at which all of it is free"
            onClick={() => void booking.earliest()}
          >
            Find the earliest
          </button>
        )}
      </Labelled>
      <Labelled
        {...props}
        field="ending"
        label="End, or how long"
        such="2h, 3d, friday 18:00, or 50T of data"
      >
        <TimeInput {...props} field="ending" time={draft.ending} part={(ending) => ({ ending })} />
      </Labelled>
    </div>
  );
}

interface FieldProps extends FieldsProps {
  field: Field;
}

/** A field with its label, examples of what to type, and what is wrong with it. */
function Labelled({
  field,
  label,
  such,
  children,
  ...props
}: FieldProps & { label: string; such?: string; children: ComponentChildren }) {
  const problem = problemOf(field, props);
  return (
    <div class="field">
      <label for={field}>{label}</label>
      <div class="typed">{children}</div>
      {such !== undefined && <small id={`${field}-such`}>{such}</small>}
      <p class="problem" id={`${field}-problem`} hidden={problem === ''}>
        {problem}
      </p>
    </div>
  );
}

/** What is said of a field; empty for nothing. An empty field is named once the form was sent. */
function problemOf(field: Field, { problems, isChecked }: Pick<FieldsProps, 'problems' | 'isChecked'>) {
  const text = problems.get(field);
  return text === '' && isChecked ? MISSING[field] : (text ?? '');
}

/** Marks an input for readers of the screen: whether it is wrong, and what says why. */
const described = (props: FieldProps) => ({
  id: props.field,
  'aria-invalid': problemOf(props.field, props) !== '',
  'aria-describedby': `${props.field}-problem ${props.field.startsWith('site') ? 'route' : `${props.field}-such`}`,
});

function SiteField({ sites, label, ...props }: FieldProps & { sites: readonly string[]; label: string }) {
  const { page, draft, field, links } = props;
  const [one, other] = field === 'site1' ? (['site1', 'site2'] as const) : (['site2', 'site1'] as const);
  const choose = (site: string): void => {
    const isReached = site === '' || routesFrom(links, site).has(draft[other]);
    page.booking.fill({ ...draft, via: undefined, [one]: site, ...(isReached ? {} : { [other]: '' }) });
  };
  return (
    <Labelled {...props} label={label}>
      <select
        {...described(props)}
        value={draft[one]}
        disabled={draft.id !== undefined}
        onInput={(event) => choose(event.currentTarget.value)}
      >
        <option value="">Choose…</option>
        {sites.map((site) => (
          <option key={site}>{site}</option>
        ))}
      </select>
    </Labelled>
  );
}

/** A field for text. What stands in it is selected when it is entered: typing replaces it. */
function TextInput({ value, type, ...props }: FieldProps & { value: string; type(value: string): void }) {
  return (
    <input
      {...described(props)}
      type="text"
      autocomplete="off"
      spellcheck={false}
      maxLength={100}
      value={value}
      onInput={(event) => type(event.currentTarget.value)}
      onFocus={(event) => event.currentTarget.select()}
    />
  );
}

/** A field for a time, typed as on the command line, and a button that shows the browser's own calendar. */
function TimeInput({
  time,
  part,
  ...props
}: FieldProps & { time: number | string; part(time: number | string): Partial<Draft> }) {
  const { page, draft, field, zone, now } = props;
  const picker = useRef<HTMLInputElement>(null);
  const { clock } = calendarOf({ zone, now });
  const show = (): void => {
    if (!picker.current) return;
    picker.current.value = typeof time === 'number' ? wallText(time, clock) : '';
    picker.current.showPicker();
  };
  const type = (text: string): void =>
    page.booking.type({ ...draft, ...part(text.trim().toLowerCase() === 'now' ? 'now' : text) });
  return (
    <span class="time">
      <TextInput
        {...props}
        value={typeof time === 'number' ? instantText(time, calendarOf({ zone, now })) : time}
        type={type}
      />
      <input
        ref={picker}
        type="datetime-local"
        class="picker"
        tabIndex={-1}
        aria-hidden="true"
        max="9999-12-31T23:59"
        onInput={({ currentTarget: { value } }) =>
          page.booking.fill({ ...draft, ...part(readWall(value, clock) ?? '') })
        }
      />
      <button
        type="button"
        class="quiet"
        aria-label={`${field === 'start' ? 'Start' : 'End'} in a calendar`}
        onClick={show}
      >
        ▾
      </button>
    </span>
  );
}

const sitesOf = (links: readonly Link[]): string[] =>
  [...new Set(links.flatMap((link) => [link.site1, link.site2]))].toSorted();

/** The sites that can be reached from one; all of them where none is chosen. */
function othersOf(links: readonly Link[], site1: string): string[] {
  const reached = routesFrom(links, site1);
  return site1 === '' ? sitesOf(links) : sitesOf(links).filter((site) => reached.has(site));
}
