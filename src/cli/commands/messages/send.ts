import { PRIORITIES } from '../../../model/message.ts'
import { speak } from '../../connection/send-command.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'send',
  group: 'People',
  summary: 'say something to an agent, unasked; - reads standard input',
  details:
    'The same as `orc send-message --to AGENT TEXT`. urgent interrupts what the agent does, high is announced to it at\n' +
    'once, the others wait until its turn is over. While everything is stopped it waits for `orc go`.',
  arguments: [{ name: 'AGENT' }, { name: 'TEXT', rest: true }],
  options: [
    { name: 'priority', value: 'PRIORITY', summary: PRIORITIES.join(', '), choices: PRIORITIES },
    { name: 'title', value: 'TEXT', summary: 'its subject' },
  ],
  examples: [
    'orc send Worker "Use the other API."',
    'orc send Worker "Stop, wrong branch." --priority urgent',
    'orc send Worker - < note.txt',
  ],
  async run({ words, option, json, place }) {
    const [to, ...text] = words
    const named = (name: string, value: string | undefined) =>
      value === undefined ? [] : [`--${name}`, value]
    const isInput = text.length === 1 && text[0] === '-'
    return await speak('send-message', [
      ...['--to', to!],
      ...named('priority', option('priority')),
      ...named('title', option('title')),
      ...(json ? ['--json'] : []),
      ...named('config', place.configFile),
      ...(isInput ? ['-'] : ['--', text.join(' ')]),
    ])
  },
}
