import { createRoot } from 'react-dom/client'
import './styles/base.css'
import './styles/shell.css'
import './styles/lists.css'
import './styles/agents.css'
import './styles/people.css'
import './styles/messages.css'
import './styles/rules.css'
import './styles/phone.css'
import { Login } from './login.tsx'
import { applyTheme } from './theme.ts'

stampStyles()
applyTheme()
createRoot(document.getElementById('root')!).render(<Login />)

/** Gives the style elements that libraries create the nonce of this page: the CSP rejects all others. */
function stampStyles() {
  const nonce = document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce
  if (nonce === undefined || nonce === '') return
  const create = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = create(name, options)
    if (element instanceof HTMLStyleElement) element.nonce = nonce
    return element
  }) as typeof document.createElement
}
