import { expect, test } from 'vitest';
import { readView, viewOf, withView } from '../../src/page/address.ts';
import { change } from '../../src/page/change.ts';
import { openState } from '../../src/page/state.ts';

const NOW = Date.parse('2026-11-22T10:00:00Z');
const LINK = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100_000 };
const WINDOW = { start: NOW, end: NOW + 86_400_000 };

test('what is looked at is read from the address as it was written, in words that can be read', () => {
  const link = { site1: LINK.site1, site2: LINK.site2 };
  const view = { experiment: 'exp_demo', link, window: WINDOW, unit: 'day' } as const;
  const query = withView('?other=1', view);
  expect(query).toBe(
    '?other=1&experiment=exp_demo&link=be-gent1,pl-poznan1&from=2026-11-22T10:00:00.000Z&until=2026-11-23T10:00:00.000Z&unit=day',
  );
  expect(readView(query)).toEqual(view);
  // Before anyone is known to be logged in, the experiment is still wanted.
  expect(withView(query, {})).toBe('?other=1&experiment=exp_demo');
  expect(withView('', {})).toBe('');
});

test.each([
  '',
  '?link=be-gent1&from=x&until=&unit=decade',
  '?from=2026-11-23T10:00Z&until=2026-11-22T10:00Z',
])('of the address %j nothing is read', (query) =>
  expect(Object.values(readView(query)).filter((part) => part !== undefined)).toEqual([]),
);

test('the timeline’s window is in it once it was moved, and comes back with its unit', () => {
  const opened = openState(NOW, 'UTC');
  expect(viewOf({ ...opened, selected: LINK })).toMatchObject({
    link: LINK,
    window: undefined,
    unit: undefined,
  });
  const action = { type: 'moved', window: WINDOW, unit: 'day' } as const;
  const moved = change(opened, { type: 'timeline', action });
  expect(viewOf(moved)).toMatchObject({ window: WINDOW, unit: 'day' });
  const turned = change(moved, { type: 'timeline', action: { type: 'turn', times: 1 } });
  expect(viewOf(turned).window?.start).toBe(WINDOW.end);
  // What begins today begins another day with that one.
  const today = change(turned, { type: 'timeline', action: { type: 'now' } });
  expect(viewOf(today)).toMatchObject({ window: undefined, unit: 'day' });
});

test('a link that the address names stays marked for who is not logged in, and goes with a logout', () => {
  const stranger = change({ ...openState(NOW, 'UTC'), selected: LINK }, { type: 'logged-out' });
  expect(stranger.selected).toBe(LINK);
  const user = { ...stranger, login: { user: { id: 'u', name: 'u' }, experiments: [] } };
  expect(change(user, { type: 'logged-out' }).selected).toBeUndefined();
});
