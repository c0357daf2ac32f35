import { createRoot } from 'react-dom/client'
import './styles/base.css'
import './styles/shell.css'
import './styles/lists.css'
import './styles/team.css'
import './styles/inbox.css'
import './styles/agent.css'
import './styles/conversations.css'
import './styles/rules.css'
import './styles/metrics.css'
import './styles/narrow.css'
import { Entrance } from './entrance.tsx'
import { stampStyles } from './nonce.ts'
import { applyTheme } from './theme.ts'

stampStyles()
applyTheme()
createRoot(document.getElementById('room')!).render(<Entrance />)
