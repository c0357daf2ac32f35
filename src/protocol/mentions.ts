/**
 * Positions at which a program takes `@name` in its input as a file to read into the context, without asking. A message must not make
 * the program read a file for the message's sender. `alone`: not in the middle of a word, as in an e-mail address.
 */
export const MENTIONS = ['alone', 'anywhere'] as const
export type Mentions = (typeof MENTIONS)[number]

/**
 * Puts a backslash before each `@` that the program would take as a file. Applying it twice changes nothing more. `where` is
 * undefined for programs that never read files by mention.
 */
export function withoutMentions(text: string, where: Mentions | undefined): string {
  if (where === undefined) return text
  // Programs strip other blanks, or count them as part of the file name.
  if (where === 'anywhere') return text.replace(/(?<!\\)@(?![ \t\r\n]|$)/g, '\\@')
  // Claude Code removes `@[…](…)` before it searches, which would expose the text behind it.
  return text.replace(/@(?=\[)/g, '@\\').replace(/(?<![\w.+\\-])@(?![ \t\r\n]|$)/g, '\\@')
}
