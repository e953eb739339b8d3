/** The one state of a page: changed by actions, through one function, and shown by views that are functions of it. */
export interface Store<State, Action> {
  readonly state: State;
  /** Changes the state. When it returns, every view shows the new one. */
  dispatch(action: Action): void;
  /**
   * Adds a view. It is shown at once, and again whenever a part of the state that it needs is another value.
   *
   * @param partsOf the parts that the view needs; each is compared as by `Object.is`
   */
  view<Parts extends object>(partsOf: (state: State) => Parts, show: (parts: Parts) => void): void;
}

/** Makes a {@link Store}. @param change gives the next state; it is pure */
export function createStore<State, Action>(
  first: State,
  change: (state: State, action: Action) => State,
): Store<State, Action> {
  let state = first;
  let shown: State | undefined;
  let isShowing = false;
  const views: ((state: State) => void)[] = [];

  /** Shows until nothing changes any more: a view may find out something by being shown, such as its width. */
  function show(): void {
    if (isShowing) return;
    isShowing = true;
    try {
      while (shown !== state) {
        const now = state;
        shown = now;
        for (const view of views) view(now);
      }
    } finally {
      isShowing = false;
    }
  }

  return {
    get state() {
      return state;
    },
    dispatch(action) {
      state = change(state, action);
      show();
    },
    view<Parts extends object>(partsOf: (state: State) => Parts, showParts: (parts: Parts) => void) {
      let before: Parts | undefined;
      const view = (now: State): void => {
        const parts = partsOf(now);
        if (before && isSame(before, parts)) return;
        before = parts;
        showParts(parts);
      };
      views.push(view);
      view(state);
    },
  };
}

/** Derives a value from parts of a state, and gives the same one for as long as the parts are the same. */
export function remembered<State, Parts extends object, Value>(
  partsOf: (state: State) => Parts,
  derive: (parts: Parts) => Value,
): (state: State) => Value {
  let known: { parts: Parts; value: Value } | undefined;
  return (state) => {
    const parts = partsOf(state);
    if (!known || !isSame(known.parts, parts)) known = { parts, value: derive(parts) };
    return known.value;
  };
}

function isSame(some: object, others: object): boolean {
  const known = new Map(Object.entries(some));
  return Object.entries(others).every(([name, part]) => Object.is(known.get(name), part));
}
