/**
 * What the program does with `@name` in what is typed or pasted: it reads that file, wherever it is, asks nobody, and puts it
 * before the model; so it does with agents and resources. A message must not do that for its sender. In the middle of a
 * word, as in an address, it means nothing. `@[…](…)` is taken out before it looks, and would uncover what comes behind.
 */
export function withoutMentions(text: string): string {
  return text.replace(/@(?=\[)/g, '@\\').replace(/(?<![\w.+\\-])@(?=\S)/g, '\\@')
}
