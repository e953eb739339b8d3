import { effect, signal, untracked, useComputed } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { isSame, remembered, type Store } from './store.ts';

/** Makes a {@link Store}. @param change gives the next state; it is pure */
export function createStore<State, Action>(
  first: State,
  change: (state: State, action: Action) => State,
): Store<State, Action> {
  const now = signal(first);
  return {
    get state() {
      return now.value;
    },
    dispatch(action) {
      now.value = change(now.peek(), action);
    },
  };
}

/** Runs at once, and again whenever a part of the state is another value, each compared as by `Object.is`. */
export function whenChanged<State, Parts extends object>(
  store: Pick<Store<State, never>, 'state'>,
  partsOf: (state: State) => Parts,
  run: (parts: Parts) => void,
): void {
  const parts = remembered(partsOf, (same: Parts) => same);
  let before: Parts | undefined;
  effect(() => {
    const now = parts(store.state);
    if (now === before) return;
    before = now;
    untracked(() => run(now));
  });
}

/** The parts of the state that a component shows: it is shown again when one of them is another value. */
export function useShown<State, Parts extends object>(
  { store }: { store: Pick<Store<State, never>, 'state'> },
  partsOf: (state: State) => Parts,
): Parts {
  const known = useRef<Parts>(null);
  return useComputed(() => {
    const parts = partsOf(store.state);
    if (!known.current || !isSame(known.current, parts)) known.current = parts;
    return known.current;
  }).value;
}
