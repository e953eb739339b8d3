/** A link past what has many stops of the Tab key. Seen while it has the focus. @param to the id of an element behind it */
export function SkipLink({ to, children }: { to: string; children: string }) {
  const skip = (event: Event): void => {
    // The address stays as it is.
    event.preventDefault();
    const end = document.getElementById(to);
    if (!end) return;
    // A stop of the Tab key while it has the focus: from what is none, Chromium goes back to where the section begins.
    end.tabIndex = 0;
    end.focus();
    end.addEventListener('blur', () => end.removeAttribute('tabindex'), { once: true });
  };
  return (
    <a class="skip" href={`#${to}`} onClick={skip}>
      {children}
    </a>
  );
}
