import { useEffect, useState } from 'preact/hooks';

/** Copies a text. @returns whether the browser let this page copy */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** How long a button says that its text was copied, in milliseconds. */
const SAID = 2000;

/** A button that copies a text, and says in its own place whether it was copied. @param label names it to readers of the screen */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState<boolean>();
  useEffect(() => {
    if (isCopied === undefined) return undefined;
    const timer = setTimeout(() => setCopied(undefined), SAID);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const said = isCopied ? 'Copied.' : 'The browser does not let this page copy: select the text.';
  return (
    <>
      <button
        type="button"
        class="quiet copy"
        aria-label={label}
        title={isCopied === false ? said : label}
        onClick={async () => setCopied(await copy(text))}
      >
        {isCopied === undefined ? 'Copy' : isCopied ? '✓' : '✗'}
      </button>
      <span class="spoken" role="status">
        {isCopied !== undefined && said}
      </span>
    </>
  );
}
