/**
 * What the program does with `@name`, even within a word: it looks for such a file or folder, and puts all of it before the
 * model, or asks a person whether it may. A message must not do that for its sender. A backslash is its own way to say no.
 */
export function withoutMentions(text: string): string {
  return text.replace(/(?<!\\)@(?=\S)/g, '\\@')
}
