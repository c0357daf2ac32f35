import { usage } from '../../errors.ts'
import type { Verb } from '../../verb.ts'
import { giveVerdict } from './decide.ts'

export const verb: Verb = {
  name: 'modify',
  group: 'People',
  summary: 'change fields of a held command and approve it so; the asker is told what was changed',
  details:
    'The change must fit the command, and the rules judge it again for whoever said it. Where several people must\n' +
    'approve, this is the first approval of the changed command. FIELD= empties a field that may be left out.',
  arguments: [{ name: 'ID' }, { name: 'FIELD=VALUE', rest: true }],
  options: [
    { name: 'comment', value: 'TEXT', summary: 'told to the asker' },
    {
      name: 'hash',
      value: 'HASH',
      summary: 'of the command as you saw it; needed where somebody else has changed it',
    },
  ],
  examples: [
    'orc modify req_3 content="Please review it today."',
    'orc modify req_3 priority=normal title= --comment "no need to hurry"',
  ],
  run(invocation) {
    const [id, ...changes] = invocation.words
    const comment = invocation.option('comment')
    const hash = invocation.option('hash')
    return giveVerdict(invocation, id!, {
      decision: 'modify',
      fields: Object.fromEntries(changes.map(readChange)),
      ...(comment === undefined ? {} : { comment }),
      ...(hash === undefined ? {} : { hash }),
    })
  },
}

/** `--in-reply-to` and `in_reply_to` are one field everywhere else, too. */
function readChange(word: string): [field: string, value: string] {
  const [, name, value] = /^([A-Za-z][\w-]*)=(.*)$/s.exec(word) ?? []
  if (name !== undefined) return [name.replaceAll('-', '_').toLowerCase(), value!]
  throw usage(
    `"${word}" changes nothing`,
    'Say FIELD=VALUE, such as priority=normal; orc inbox shows the fields.',
  )
}
