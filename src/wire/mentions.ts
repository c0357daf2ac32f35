/**
 * Where a program takes `@name`, in what is typed, pasted or sent to it, for a file: it reads that, asks nobody, and puts it
 * before the model. A message must not do that for its sender. `alone`: not in the middle of a word, as in an address.
 */
export const MENTIONS = ['alone', 'anywhere'] as const
export type Mentions = (typeof MENTIONS)[number]

/** Undefined: it takes it for a name anyway. With a backslash the name is a name, for the programs as for their models. Given a second time it stays the same. */
export function withoutMentions(text: string, where: Mentions | undefined): string {
  if (where === undefined) return text
  // To a program other blanks belong to the name, or are taken out on the way to it.
  if (where === 'anywhere') return text.replace(/(?<!\\)@(?![ \t\r\n]|$)/g, '\\@')
  // Claude Code takes `@[…](…)` out before it looks, which would uncover what stands behind it.
  return text.replace(/@(?=\[)/g, '@\\').replace(/(?<![\w.+\\-])@(?![ \t\r\n]|$)/g, '\\@')
}
